/** `1,234,567` */
export function countText(value: number): string {
  // Intl takes a fifth of the start of a command for this.
  return String(Math.round(value)).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

/** `1 shard`, `24 shards` */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${countText(value)} ${value === 1 ? one : many}`
}

/** `812 B`, `8.1 MB`: decimal units. */
export function bytesText(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']
  let unit = 0
  let rest = value
  while (rest >= 999.95 && unit < units.length - 1) {
    rest /= 1000
    unit++
  }
  return `${unit === 0 ? rest : rest.toFixed(1)} ${units[unit]}`
}
