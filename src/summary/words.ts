import { IDENTITY_POLICIES, SECRET_POLICIES } from '../core/index.ts'
import type { RunBy } from '../state/index.ts'

/** The first two or three digits, truncated: `940`, `1.2k`, `56k`, `340M`. */
export function short(value: number): string {
  const unit = Math.max(0, Math.min(UNITS.length - 1, Math.floor((String(value).length - 1) / 3)))
  const shown = value / 1000 ** unit
  return `${unit > 0 && shown < 10 ? (Math.floor(shown * 10) / 10).toFixed(1) : Math.floor(shown)}${UNITS[unit]}`
}

const UNITS = ['', 'k', 'M', 'G']

/** `2024-07-22 19:25`, a date alone for midnights. */
export function time(text: string): string {
  const [, date, hour = '00', minute = '00'] = /^([\d-]{10})(?:T(\d\d):?(\d\d))?/.exec(text) ?? ['', text]
  return hour === '00' && minute === '00' ? date! : `${date} ${hour}:${minute}`
}

/** A range as people read it: `2024-01-01 to 2024-12-31`, its last day included. */
export function rangeText(from: string, until: string): string {
  const [first, last] = [time(from), until === 'now' ? 'now' : lastOf(until)]
  return first === last ? first : `${first} to ${last}`
}

/** The last day before a midnight, or the instant itself. */
function lastOf(until: string): string {
  const date = time(until)
  return date.length > 10 ? date : new Date(Date.parse(date) - 1).toISOString().slice(0, 10)
}

/** How a manifest says that its rows are masked. One of another version may name a policy that this one does not know. */
export function maskingWords(masking: { readonly secret: string; readonly identity: string }) {
  return {
    secret: wordsOf(SECRET_POLICIES, masking.secret),
    identity: wordsOf(IDENTITY_POLICIES, masking.identity),
  }
}

function wordsOf(policies: Readonly<Record<string, { readonly words: string }>>, name: string): string {
  return policies[name]?.words ?? name
}

/** `organization 7, tenant 12, host etl-2` */
export function byText({ organization, tenant, host }: RunBy): string {
  return [
    ...(organization === null ? [] : [`organization ${organization}`]),
    ...(tenant === null ? [] : [`tenant ${tenant}`]),
    `host ${host}`,
  ].join(', ')
}
