import * as z from 'zod'
import { ExportError, type ServiceSettings } from '../core/index.ts'
import { jsonBody } from '../http/index.ts'
import { reportRequest } from './page-requests.ts'
import { type CallDeps, Service } from './service.ts'

const text = z.string().nullish()
const texts = z.array(z.string()).nullish()
const integer = z.int().nullish()

/** Source: service spec 2.1; everything but the identifier may be null or absent, unknown fields stay. */
const Report = z.looseObject({
  id: z.int(),
  format_type: text,
  title: text,
  subtitle: text,
  summary: text,
  content: text,
  tags: texts,
  highlights: texts,
  related_activity_uids: texts,
  prompt_preset_uid: text,
  created_at: text,
  published_at: text,
  updated_at: text,
  reading_time: integer,
  tenant_id: integer,
  organization_id: integer,
})
export type Report = z.infer<typeof Report>

const ReportResponse = z.object({ report: Report })

/** Threat-flow reports, which cost no searches. They share a connection, a token and the rate limit. */
export type Reports = {
  /** @throws ExportError naming the report */
  fetch(id: number): Promise<Report>
  close(): Promise<void>
}

export function openReports(settings: ServiceSettings, deps: CallDeps): Reports {
  const service = Service.forCalls(settings, deps)
  return { fetch: (id) => fetchReport(service, id), close: () => service.close() }
}

/** Source: service spec 4.1. @throws ExportError `data` when the response is no report; else as `Service.request` */
export async function fetchReport(service: Service, id: number): Promise<Report> {
  const request = reportRequest(service.endpoints.reports, id, `report ${id}`)
  return service.request(request, async (body, where) => parseReport(body, id, where))
}

function parseReport(body: Uint8Array, id: number, where: string): Report {
  const response = ReportResponse.safeParse(jsonBody(body, where))
  if (response.success && response.data.report.id === id) return response.data.report
  if (response.success) {
    throw new ExportError({
      kind: 'data',
      what: 'The response holds another report than the requested one',
      where,
      next: 'Check service.report_path, and proxies and caches before the service: a cache may mix up responses.',
    })
  }
  const fields = new Set(response.error.issues.map(({ path }) => path.join('.') || 'the response itself'))
  throw new ExportError({
    kind: 'data',
    what: `The response is no report; wrong or missing: ${[...fields].join(', ')}`,
    where,
    next: 'Check service.report_path.',
  })
}
