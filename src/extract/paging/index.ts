export { type Chain, type ExtractedPage, extractPages } from './extract-pages.ts'
export { fetchReport, type Report } from './fetch-report.ts'
