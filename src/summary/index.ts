export type { Groups, RowFacts, SummaryInput } from './contents.ts'
export { type Evidence, evidenceTar } from './evidence.ts'
export { summaryMarkdown } from './markdown.ts'
export { summaryPage, withVerdict } from './page.ts'
