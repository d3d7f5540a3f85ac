export { type ReportedDataSet, summarize } from './summarize.ts'
export { writeReport } from './write-report.ts'
