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

const WIDTH = 860
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

/** Draws bars as SVG, without a DOM. @returns the SVG element */
export function drawBars({ names, series, direction, unit, hatched }: Bars): string {
  const isUp = direction === 'up'
  const height = isUp ? 240 : 44 + 26 * names.length * Math.max(1, series.length * 0.7)
  const label = { color: INK, fontSize: 12 }
  const category = {
    type: 'category',
    data: names,
    inverse: !isUp,
    axisTick: { show: false },
    axisLine: { lineStyle: { color: LINE } },
    axisLabel: isUp ? label : { ...label, width: 230, overflow: 'truncate' },
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
    grid: { left: isUp ? 70 : 250, right: 60, top: series.length > 1 ? 34 : 12, bottom: 28 },
    ...(series.length > 1 ? { legend: { top: 0, itemGap: 60, textStyle: label, selectedMode: false } } : {}),
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
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  try {
    chart.setOption(option)
    return plainSvg(chart.renderToSVGString())
  } finally {
    chart.dispose()
  }
}

/** Removes attributes that only a script could use. */
function plainSvg(svg: string): string {
  return svg
    .replace(/<style\s*>.*?<\/style>/gs, '')
    .replace(/ (?:ecmeta_\w+|class|pointer-events)="[^"]*"/g, '')
    .replace(/^<svg width="\d+" height="[\d.]+"/, '<svg aria-hidden="true" focusable="false"')
}
