export type { ReportData, ReportRun, TimeUnit } from './data.ts'
export { classOf, LEAST_ROWS, largestGroups, shareOf, shown } from './disclosure.ts'
export { type Evidence, evidenceTar, type PackedEvidence } from './evidence/index.ts'
export { renderReport } from './render.ts'
