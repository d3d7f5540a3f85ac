export type { Between, HeatCell, Shown, SummaryPageData, SummaryPageRun, TimeUnit } from './data.ts'
export {
  asParts,
  classOf,
  largestGroups,
  MIN_ROWS,
  NO_ROWS,
  type Sum,
  shareOf,
  shown,
  shownCells,
  shownCounts,
  shownSeries,
  shownTotal,
  withPart,
} from './disclosure.ts'
export { type Evidence, evidenceTar, type PackedEvidence } from './evidence.ts'
export { summaryPage } from './page.ts'
