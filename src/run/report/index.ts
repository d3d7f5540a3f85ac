export { type ReportedDataSet, type SummarizeOptions, summarizeDataSet } from './summarize.ts'
export { writeReport } from './write-report.ts'
