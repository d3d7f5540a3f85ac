export { type Groups, type RowFacts, type SummaryInput, verdictOf } from './contents.ts'
export { type Evidence, evidenceTar } from './evidence.ts'
export { summaryMarkdown } from './markdown.ts'
export { isPageOf, summaryPage } from './page.ts'
