import { ExportError, type PageContext } from '../../core/index.ts'

/** Where in a run a page is: partition and page, for messages, which count from 1 on. */
export function pagePlace(context: PageContext): string {
  return `${context.partition}, page ${context.page + 1}`
}

/** An item lies outside the window asked for. @param index from 0 on */
export function ignoredFilter(index: number, context: PageContext): ExportError {
  return new ExportError(
    'data',
    `Item ${index + 1} of the answer has an imported_at that was not asked for: the service ignored the filter`,
    pagePlace(context),
    'Check that service.search_path names an endpoint that filters by imported_at: the service does so for every kind of query since May 2026 only, and an older deployment ignores the filter. Leave out extract.windows there.',
  )
}

/** Another report came than the one asked for. */
export function wrongReport(context: PageContext): ExportError {
  return new ExportError(
    'data',
    'The answer holds another report than the one that was asked for',
    pagePlace(context),
    'Check service.report_path, and what stands between here and the service: a cache may mix up answers.',
  )
}
