import { once } from 'node:events'
import { startSandbox } from '../../library.ts'
import { sandboxBanner } from '../../sandbox/index.ts'
import {
  command,
  grouped,
  numberValue,
  stringValue,
  stringValues,
  wrongUsage,
} from '../command-line/command.ts'
import { DONE } from '../terminal/exit-code.ts'

const SERVED = grouped('What is served:', {
  port: { type: 'number', default: 8787, requiresArg: true, describe: 'On 127.0.0.1; 0: a free one [8787]' },
  records: numberValue('Credentials per domain, between --from and --until [1000]'),
  seed: stringValue('Another seed, other data'),
  token: stringValue('The token that is accepted [random]'),
  domain: stringValues('Domain with data; repeatable'),
  'public-fields': {
    type: 'boolean',
    describe: 'With the fields that only the public documentation has, such as event_uid',
  },
  from: stringValue('First import time [2024-01-01]'),
  until: stringValue('End of import times [2025-01-01]'),
})

const LIMITS = grouped('Limits:', {
  'requests-per-second': numberValue('Search tier; 0: no limit [1]'),
  'basic-requests-per-second': numberValue('Everything else; 0: no limit [4]'),
  quota: numberValue('Searches left this month [1000000]'),
  'rows-per-search': numberValue('Rows that one search covers; 0: a page is one search [100]'),
  latency: numberValue('Wait before every response, in milliseconds [0]'),
  'ms-per-row': numberValue('What each row of a response adds to that [0]'),
  'gateway-timeout': stringValue('Longer responses become 504, for example 30s [none]'),
})

const TROUBLE = grouped('Trouble:', {
  'error-rate': numberValue('Share of searches that fail with 503 [0]'),
  'invalid-rate': numberValue('Share of items that break the schema [0]'),
  'empty-page-rate': numberValue('Share of empty pages [0]'),
  'token-lifetime': numberValue('Seconds until tokens end'),
})

export const sandbox = command({
  flags: { ...SERVED, ...LIMITS, ...TROUBLE },
  examples: [
    ['$0 sandbox --records 5000', 'Then run a pipeline of its domains against it'],
    ['$0 sandbox --port 0 --requests-per-second 0', 'On a free port, without a rate limit'],
  ],
  async run(args, io) {
    const signals = io.signals.listen(() => {})
    const { domain, latency, gatewayTimeout, tokenLifetime } = args
    const service = await startSandbox({
      port: args.port,
      records: args.records,
      seed: args.seed,
      token: args.token,
      domains: domain && [...new Set(domain)],
      publicFields: args.publicFields,
      from: args.from,
      until: args.until,
      requestsPerSecond: args.requestsPerSecond,
      basicRequestsPerSecond: args.basicRequestsPerSecond,
      quota: args.quota,
      rowsPerSearch: args.rowsPerSearch,
      latencyMs: latency,
      msPerRow: args.msPerRow,
      gatewayTimeoutMs: milliseconds(gatewayTimeout),
      errorRate: args.errorRate,
      invalidRate: args.invalidRate,
      emptyPageRate: args.emptyPageRate,
      tokenLifetimeMs: tokenLifetime === undefined ? undefined : tokenLifetime * 1000,
    })
    try {
      await io.stdout.line(sandboxBanner(service, args.domain))
      if (!signals.stop.aborted) await once(signals.stop, 'abort')
    } finally {
      await service.close()
      signals.release()
    }
    return DONE
  },
})

function milliseconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(text) ?? []
  if (number !== undefined) return Number(number) * { ms: 1, s: 1000, m: 60_000 }[unit ?? 's']!
  throw wrongUsage(
    '--gateway-timeout is a duration such as 500ms, 30s or 1m',
    'See `spillway sandbox --help`.',
  )
}
