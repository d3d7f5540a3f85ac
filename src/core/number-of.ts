/** `1 row`, `24 rows`: for messages. */
export function numberOf(value: number, one: string, many = `${one}s`): string {
  return `${value} ${value === 1 ? one : many}`
}
