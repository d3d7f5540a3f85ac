import type { ServerResponse } from 'node:http'
import { type Received, sendJson, serveSearches } from '../extract/support.ts'
import { type Fields, itemAt } from './world.ts'

/** A row of a made-up service: its time in microseconds after 2024-01-01, and nanoseconds more. */
export type MadeUpRow = { readonly id: number; readonly at: number; readonly nanos?: number }

/** How a made-up service serves its rows. A test may change it between two requests. */
export type Habits = {
  rows: readonly MadeUpRow[]
  /** In which order pages come: by time, as requested, or by id, whatever is requested. */
  by: 'time' | 'id'
  /** Larger pages are not served: a gateway gives up. */
  most: number
  /** A cursor is only accepted with the size of the page that it came with. */
  bindsSizes: boolean
  /** Cursors that were given out under another key are refused. */
  cursorKey: string
  /** Responds in place of the service. @returns whether it did */
  fault: (request: Received, response: ServerResponse, index: number) => boolean
}

const BEGIN_MS = Date.parse('2024-01-01T00:00:00Z')

function timeOf({ at, nanos = 0 }: MadeUpRow): string {
  const ms = new Date(BEGIN_MS + Math.floor(at / 1000)).toISOString().slice(0, -1)
  return `${ms}${String(at % 1000).padStart(3, '0')}${String(nanos).padStart(3, '0')}Z`
}

/** Nanoseconds since the epoch: no double holds them. */
function nanosOf(time: string): bigint {
  const [seconds, fraction = ''] = time.replace(/Z|\+00:00$/, '').split('.')
  return BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'))
}

export async function madeUpService(given: Partial<Habits> & Pick<Habits, 'rows'>) {
  const habits: Habits = {
    by: 'time',
    most: 10_000,
    bindsSizes: false,
    cursorKey: 'one',
    fault: () => false,
    ...given,
  }
  const server = await serveSearches((request, response, index) => {
    if (habits.fault(request, response, index)) return
    const { from, size, order, filters } = request.json as Body
    const filter = JSON.stringify(filters ?? null)
    const cursor = from === undefined ? null : (JSON.parse(from) as Cursor)
    const isForeign =
      cursor !== null &&
      (cursor.filter !== filter ||
        cursor.key !== habits.cursorKey ||
        (habits.bindsSizes && cursor.size !== size))
    if (isForeign) {
      sendJson(response, { error: { code: 'INVALID_CURSOR', message: 'no' } }, { status: 400 })
      return
    }
    if (size > habits.most) {
      response.writeHead(504).end('upstream request timeout')
      return
    }
    const found = select(habits, order, filters?.imported_at)
    const start = cursor?.start ?? 0
    const page = found.slice(start, start + size)
    const next: Cursor = { start: start + size, filter, size, key: habits.cursorKey }
    const items: readonly Fields[] = page.map((row) => itemAt(row.id, timeOf(row)))
    sendJson(response, { items, next: start + size < found.length ? JSON.stringify(next) : null })
  })
  return {
    ...server,
    habits,
    sizes: () => server.received.map(({ json }) => (json as Body).size),
  }
}

type Filter = { readonly gte?: string; readonly lte?: string }
type Body = {
  readonly from?: string
  readonly size: number
  readonly order: string
  readonly filters?: { imported_at: Filter }
}
type Cursor = { readonly start: number; readonly filter: string; readonly size: number; readonly key: string }

function select({ rows, by }: Habits, order: string, { gte, lte }: Filter = {}): readonly MadeUpRow[] {
  const found = rows.filter(
    (row) =>
      (gte === undefined || nanosOf(timeOf(row)) >= nanosOf(gte)) &&
      (lte === undefined || nanosOf(timeOf(row)) <= nanosOf(lte)),
  )
  const sign = order === 'desc' ? -1 : 1
  const byTime = (a: MadeUpRow, b: MadeUpRow): number => a.at - b.at || (a.nanos ?? 0) - (b.nanos ?? 0)
  return found.toSorted((a, b) => sign * ((by === 'time' ? byTime(a, b) : 0) || a.id - b.id))
}
