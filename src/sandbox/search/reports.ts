import * as z from 'zod'
import { formatTimestamp } from '../data/timeline.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { serviceError, validate } from './service-error.ts'

export type Reports = {
  /** `GET …/reports/{id}`. @throws ServiceError 404, 422 */
  one(id: string): unknown
  /** `GET …/reports/?from=&size=&order=`. @throws ServiceError 400, 422 */
  list(parameters: URLSearchParams): unknown
}

const REPORT_COUNT = 25

const listParameters = z.strictObject({
  from: z.string().optional(),
  size: z.coerce.number().int().min(1).max(10_000).default(10),
  order: z.enum(['asc', 'desc']).default('desc'),
})

/** Source: spec 2.1 and 4.1 for a report, the public documentation for the list. Ids are 1 to 25. */
export function reports(cursorKey: string): Reports {
  return {
    one(id) {
      const number = validate(
        z.strictObject({ report_id: z.coerce.number().int() }),
        { report_id: id },
        'path',
      )
      if (number.report_id < 1 || number.report_id > REPORT_COUNT) {
        throw serviceError(404, 'NOT_FOUND', 'no such report')
      }
      return { report: report(number.report_id) }
    },
    list(parameters) {
      const { from, size, order } = validate(listParameters, Object.fromEntries(parameters), 'query')
      const asked = JSON.stringify(['reports', size, order])
      const point = from ? readCursor(cursorKey, asked, from) : { index: 0, page: 0, rows: 0 }
      const ids = Array.from({ length: REPORT_COUNT }, (_, i) => (order === 'asc' ? i + 1 : REPORT_COUNT - i))
      const end = point.index + size
      return {
        items: ids.slice(point.index, end).map(report),
        next:
          end < REPORT_COUNT
            ? writeCursor(cursorKey, asked, { index: end, page: point.page + 1, rows: 0 })
            : null,
      }
    },
  }
}

const TOPICS = ['Quiet forum, loud leaks', 'Week of the stealer logs', 'A combo list, taken apart'] as const
const TAGS = ['stealer', 'forum', 'combo-list', 'phishing', 'quarterly'] as const

function report(id: number) {
  // 2024-01-08T09:00:00Z and a week for every report.
  const created = 1_704_704_400_000_000 + (id - 1) * 7 * 86_400_000_000
  const topic = TOPICS[id % TOPICS.length]!
  return {
    id,
    format_type: 'simple_summary',
    title: `${topic}, part ${id}`,
    subtitle: id % 6 === 0 ? '' : `What the sandbox made up in week ${id}`,
    summary: `An invented summary of report ${id}: "nothing happened", said nobody.`,
    content: `# ${topic}\n\nInvented content of report ${id}.\n\n- first, with a comma\n- second 🧵\n\n| a | b |\n|---|---|\n| ${id} | \\| |\n`,
    tags: TAGS.slice(0, id % (TAGS.length + 1)),
    highlights: Array.from(
      { length: id % 4 },
      (_, i) => `Highlight ${i + 1} of report ${id}\nwith a second line`,
    ),
    related_activity_uids: Array.from({ length: id % 3 }, (_, i) => `activity/${id}-${i}`),
    prompt_preset_uid: `preset-${id % 2}`,
    created_at: formatTimestamp(created + id * 1009, '+00:00'),
    published_at: formatTimestamp(created + 3_600_000_000, 'Z', true),
    updated_at: formatTimestamp(created + 7_200_000_001, '+00:00'),
    reading_time: 2 + (id % 9),
    tenant_id: 1,
    organization_id: 1,
  }
}
