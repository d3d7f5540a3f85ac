import { type Clock, ExportError, endOfMonth, monthOf, numberOf } from '../core/index.ts'
import {
  InTurn,
  MARGIN,
  type Pace,
  type RateLimit,
  sleepUntil,
  type Turn,
  WIDER,
  WIDEST,
} from '../run/index.ts'
import type { Database } from './database.ts'

/** What is told to all workers: an organization's tiers are to be left alone for so many milliseconds. */
export const PAUSES = 'spillway_pauses'

export type PaceOptions = {
  readonly database: Database
  readonly clock: Clock
  readonly organization: string
  readonly run: string
  readonly pauses: Pauses
  readonly searchesRemaining: () => number | null
}

// The first request of a worker meets cold code and no connection; others wait for it, once.
const FIRST_MS = 500
/** Above the exact interval there is room for this much, but no more than a twentieth of it. */
const ROOM_MS = 10
/** From here on it is worth asking. */
const LATE_MS = 3
// Who came too late for his turn asks for more room with the next one: so much of the interval, each time again.
const MORE_ROOM = 0.25
/** Intervals shorter than this are of the order of what timers are late by; they are kept on average. */
const EXACT_FROM_MS = 100

/** Until when organizations are to be left alone, by the monotonic clock; one for all that a process sends. */
export class Pauses {
  readonly #until = new Map<string, number>()

  /** Takes what the database tells: `<milliseconds> <organization>`. */
  hear(message: string, clock: Clock): void {
    const [ms = '', ...name] = message.split(' ')
    this.set(name.join(' '), clock.monotonicMs() + Number(ms))
  }

  set(organization: string, untilMs: number): void {
    this.#until.set(organization, Math.max(untilMs, this.until(organization)))
  }

  until(organization: string): number {
    return this.#until.get(organization) ?? Number.NEGATIVE_INFINITY
  }
}

/**
 * The pace of an organization, kept by all workers together: turns are given by the database, by its own clock, one at a
 * time. What the run may spend is counted in the same step.
 */
export function sharedPace(
  rates: { readonly search: number; readonly basic: number },
  options: PaceOptions,
): Pace {
  return {
    search: sharedLimit('search', rates.search, options),
    basic: sharedLimit('basic', rates.basic, options),
  }
}

function sharedLimit(tier: 'search' | 'basic', requestsPerSecond: number, options: PaceOptions): RateLimit {
  const { database, clock, organization, run, pauses, searchesRemaining } = options
  const exactMs = 1000 / requestsPerSecond
  let intervalMs = exactMs + Math.max(exactMs * (MARGIN - 1), Math.min(ROOM_MS, exactMs / 20))
  /** Turns in a row that it came too late for. */
  let lost = 0
  let isFirst = true
  const turns = new InTurn()
  const send = (sql: string, values: readonly unknown[]): void => {
    // The next turn is asked for in any case; this only makes it better.
    void database.query(sql, values).catch(() => {})
  }

  /** When the next turn is, by the monotonic clock, and how much later a request does not come too near to the next one. */
  async function nextTurn(signal: AbortSignal): Promise<OwnTurn> {
    const spacingMs = intervalMs + (isFirst ? FIRST_MS : 0) + lost * MORE_ROOM * exactMs
    const [found] = await database.insist(
      `SELECT wait_ms, refusal, amount, next_at FROM take_turn($1, $2, $3, $4 * interval '1 millisecond', $5)`,
      [organization, tier, run, spacingMs, searchesRemaining()],
      signal,
    )
    isFirst = false
    if (found?.refusal != null) throw refusal(String(found.refusal), Number(found.amount), clock)
    const roomMs = exactMs < EXACT_FROM_MS ? Number.POSITIVE_INFINITY : spacingMs - exactMs
    return {
      atMs: clock.monotonicMs() + Number(found?.wait_ms ?? 0),
      roomMs,
      spacingMs,
      nextAt: String(found?.next_at),
    }
  }

  async function due(signal: AbortSignal): Promise<OwnTurn> {
    for (;;) {
      const turn = await nextTurn(signal)
      await sleepUntil(() => turn.atMs, { clock, signal })
      if (pauses.until(organization) <= clock.monotonicMs()) return inTime(turn)
      // The turn is over by then; it was counted, and is not used.
      giveBack()
      await sleepUntil(() => pauses.until(organization), { clock, signal })
    }
  }

  /** Timers fire late where there is much to do; as long as nobody has the next turn that costs nothing but the delay. */
  async function inTime(turn: OwnTurn): Promise<OwnTurn> {
    if (clock.monotonicMs() - turn.atMs < Math.min(LATE_MS, turn.roomMs)) return turn
    const moved = database.query(`SELECT move_turn($1, $2, $3, $4 * interval '1 millisecond') AS moved`, [
      organization,
      tier,
      turn.nextAt,
      turn.spacingMs,
    ])
    const [answer] = await moved.catch(() => [])
    return answer?.moved === true ? { ...turn, atMs: clock.monotonicMs() } : turn
  }

  function giveBack(): void {
    if (tier === 'search') {
      send('UPDATE spending SET requests = requests - 1 WHERE run = $1 AND month = $2', [
        run,
        monthOf(clock.now()),
      ])
    }
  }

  return {
    async turn(signal): Promise<Turn> {
      const { due: own, end } = await turns.enter(() => due(signal), signal)
      let isTaken = false
      let hasEnded = false
      return {
        take() {
          const now = clock.monotonicMs()
          if (now < pauses.until(organization)) return false
          // The connection stands by now, so the next turn will hardly be missed.
          if (now - own.atMs > own.roomMs) {
            lost++
            return false
          }
          lost = 0
          isTaken = true
          end()
          return true
        },
        end() {
          if (!isTaken && !hasEnded) giveBack()
          hasEnded = true
          end()
        },
      }
    },
    pauseUntil(monotonicMs) {
      const pauseMs = monotonicMs - clock.monotonicMs()
      pauses.set(organization, monotonicMs)
      intervalMs = Math.min(intervalMs * WIDER, exactMs * WIDEST)
      send(
        `WITH paused AS (
           UPDATE tiers SET paused_until = greatest(paused_until, clock_timestamp() + $2 * interval '1 millisecond')
           WHERE organization = $1 RETURNING 1
         ) SELECT pg_notify('${PAUSES}', $3) FROM paused LIMIT 1`,
        [organization, pauseMs, `${Math.ceil(pauseMs)} ${organization}`],
      )
    },
    pausedForMs: () => Math.max(0, pauses.until(organization) - clock.monotonicMs()),
  }
}

type OwnTurn = {
  /** By the monotonic clock. */
  readonly atMs: number
  /** How much later a request does not come too near to the next one. */
  readonly roomMs: number
  readonly spacingMs: number
  /** When the next turn is, by the database's clock, as long as nobody has it. */
  readonly nextAt: string
}

function refusal(why: string, amount: number, clock: Clock): ExportError {
  switch (why) {
    case 'budget':
      return quota(
        `The budget of ${numberOf(amount, 'request')} is used up`,
        'Submit again, or raise extract.max_requests: the export goes on from where it stopped.',
      )
    case 'month': {
      const month = monthOf(clock.now())
      return quota(
        `The ${amount} searches for ${month} are used up`,
        `Submit again from ${endOfMonth(month)} on, or raise extract.monthly_searches.`,
      )
    }
    case 'quota':
      return quota(
        `The service says that ${numberOf(amount, 'search is', 'searches are')} left, fewer than are to be kept`,
        'Lower extract.min_searches_remaining or wait for the next quota period, then submit again.',
      )
    default:
      return new ExportError(
        'interrupted',
        'The run was stopped',
        'run of many workers',
        'Submit it again to go on.',
      )
  }
}

function quota(what: string, next: string): ExportError {
  return new ExportError('quota', what, 'run of many workers', next)
}
