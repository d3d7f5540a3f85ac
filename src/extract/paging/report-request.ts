import type { Service, ServiceRequest } from '../service/index.ts'

/** Reports are fetched at the basic tier's pace. */
export function reportRequest(url: URL, about: string, hasCursor: boolean): ServiceRequest {
  return { method: 'GET', url, tier: 'basic', body: null, about, hasCursor, size: null, canShrink: false }
}

/** `GET {report_path}/{id}`. Source: service spec 4.1. */
export function reportUrl(service: Service, id: number): URL {
  return withPath(service.endpoints.reports, String(id))
}

/** `GET {report_path}/?from=&size=&order=`. Source: public API documentation. */
export function listUrl(
  service: Service,
  { pageSize, order }: { pageSize: number; order: 'asc' | 'desc' },
  cursor: string | null,
): URL {
  const url = withPath(service.endpoints.reports, '')
  if (cursor !== null) url.searchParams.set('from', cursor)
  url.searchParams.set('size', String(pageSize))
  url.searchParams.set('order', order)
  return url
}

function withPath(base: URL, last: string): URL {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${last}`
  return url
}
