import { ExportError, type PageContext } from '../../core/index.ts'

/** Where in a run a page is: partition and page, for messages. */
export function pagePlace(context: PageContext): string {
  return `${context.partition.key}, page ${context.page}`
}

/** An item breaks the schema under `on_invalid: fail`. Names fields, never values. */
export function invalidItem(index: number, paths: readonly string[], context: PageContext): ExportError {
  const fields = [...new Set(paths)].slice(0, 20).map((path) => (path === '' ? 'the item itself' : path))
  return new ExportError(
    'data',
    `Item ${index} of the answer breaks the schema at ${fields.join(', ')}`,
    pagePlace(context),
    'Set transform.on_invalid to quarantine to export the rest.',
  )
}

/** An item lies outside the window asked for. */
export function ignoredFilter(index: number, context: PageContext): ExportError {
  return new ExportError(
    'data',
    `Item ${index} of the answer has an imported_at that was not asked for: the service ignored the filter`,
    pagePlace(context),
    'Check that service.search_path names an endpoint that filters by imported_at.',
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
