import { BarChart } from 'echarts/charts'
import { GridComponent, LegendComponent } from 'echarts/components'
import { type EChartsCoreOption, init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'

use([BarChart, GridComponent, LegendComponent, SVGRenderer])

/** One bar, or a few side by side, for each name. */
export type Bars = {
  readonly names: readonly string[]
  readonly series: readonly { readonly name: string; readonly values: readonly number[] }[]
  /** `up`: vertical bars, for times; `along`: horizontal bars, for names. */
  readonly direction: 'up' | 'along'
  /** Appended to each number. */
  readonly unit: string
  /** The indices of names that are not complete. */
  readonly hatched: readonly number[]
}

/** The chart of wide screens and paper, and that of telephones, whose letters a narrow screen does not shrink. */
const SIZES = [
  { name: 'broad', width: 860, names: 250, right: 60, gap: 60 },
  { name: 'slim', width: 400, names: 140, right: 30, gap: 20 },
] as const
// Colours are the page's, so that they follow its light and dark.
const INK = 'var(--ink)'
const LINE = 'var(--line)'
const BARS = ['var(--bar)', 'var(--bar2)']

const HATCHED = {
  decal: {
    symbol: 'rect',
    dashArrayX: [1, 0],
    dashArrayY: [3, 4],
    rotation: -Math.PI / 4,
    color: 'var(--paper)',
  },
}

/** Draws bars as SVG, without a DOM. @returns an SVG element for each width of screen; the style shows one */
export function drawBars(bars: Bars): string {
  return SIZES.map((size) => drawn(bars, size)).join('')
}

function drawn({ names, series, direction, unit, hatched }: Bars, size: (typeof SIZES)[number]): string {
  const isUp = direction === 'up'
  const height = isUp ? 240 : 44 + 26 * names.length * Math.max(1, series.length * 0.7)
  const label = { color: INK, fontSize: 12 }
  const category = {
    type: 'category',
    data: names,
    inverse: !isUp,
    axisTick: { show: false },
    axisLine: { lineStyle: { color: LINE } },
    axisLabel: isUp ? label : { ...label, width: size.names - 20, overflow: 'truncate' },
  }
  const value = {
    type: 'value',
    minInterval: 1,
    axisLabel: { ...label, formatter: `{value}${unit}`, hideOverlap: true },
    splitLine: { lineStyle: { color: LINE } },
  }
  const option: EChartsCoreOption = {
    animation: false,
    textStyle: { fontFamily: 'inherit' },
    grid: { left: isUp ? 70 : size.names, right: size.right, top: series.length > 1 ? 34 : 12, bottom: 28 },
    ...(series.length > 1
      ? { legend: { top: 0, itemGap: size.gap, textStyle: label, selectedMode: false } }
      : {}),
    xAxis: isUp ? category : value,
    yAxis: isUp ? value : category,
    series: series.map(({ name, values }, i) => ({
      type: 'bar',
      name,
      data: values.map((value, i) => (hatched.includes(i) ? { value, itemStyle: HATCHED } : value)),
      silent: true,
      barMaxWidth: 26,
      itemStyle: { color: BARS[i] },
    })),
  }
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: size.width, height })
  try {
    chart.setOption(option)
    return plainSvg(chart.renderToSVGString(), size.name)
  } finally {
    chart.dispose()
  }
}

/** Removes attributes that only a script could use. */
function plainSvg(svg: string, name: string): string {
  return svg
    .replace(/<style\s*>.*?<\/style>/gs, '')
    .replace(/ (?:ecmeta_\w+|class|pointer-events)="[^"]*"/g, '')
    .replace(/^<svg width="\d+" height="[\d.]+"/, `<svg class="${name}" aria-hidden="true" focusable="false"`)
}
