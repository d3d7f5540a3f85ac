import * as z from 'zod'
import { ExportError } from '../core/index.ts'
import { jsonBody } from '../http/index.ts'
import { reportRequest } from './page-requests.ts'
import type { Service } from './service.ts'

const text = z.string().nullish()
const texts = z.array(z.string()).nullish()

/** Source: service spec 2.1; everything but the identifier may be null or absent; fields that are not printed stay as they are. */
const Report = z.looseObject({
  id: z.int(),
  format_type: text,
  title: text,
  subtitle: text,
  summary: text,
  content: text,
  tags: texts,
  highlights: texts,
  published_at: text,
  updated_at: text,
  reading_time: z.int().nullish(),
})
export type Report = z.infer<typeof Report>

const ReportResponse = z.object({ report: Report })

/** A threat-flow report, which costs no search. Source: service spec 4.1. @throws ExportError `data` when the response is no report; else as `Service.request` */
export async function fetchReport(service: Service, id: number): Promise<Report> {
  const request = reportRequest(service.endpoints.reports, id, `report ${id}`)
  return service.request(request, async (body, where) => parseReport(body, id, where))
}

function parseReport(body: Uint8Array, id: number, where: string): Report {
  const { data, error } = ReportResponse.safeParse(jsonBody(body, where))
  if (data?.report.id === id) return data.report
  const fields = error?.issues.map(({ path }) => path.join('.') || 'the response itself')
  const what =
    fields === undefined
      ? 'The response holds another report than the requested one'
      : `The response is no report; wrong or missing: ${[...new Set(fields)].join(', ')}`
  const next = 'Check service.report_path, and proxies and caches before the service.'
  throw new ExportError({ kind: 'data', what, where, next })
}
