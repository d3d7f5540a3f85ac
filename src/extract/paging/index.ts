export { type Chain, type ExtractedPage, extractPages, type Sizing } from './extract-pages.ts'
export { fetchReport, type Report } from './fetch-report.ts'
