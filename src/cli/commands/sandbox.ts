import { once } from 'node:events'
import { startSandbox } from '../../library.ts'
import { SandboxOptionError, type SandboxOptions, sandboxBanner } from '../../sandbox/index.ts'
import {
  command,
  durationValue,
  grouped,
  numberValue,
  stringValue,
  stringValues,
  wrongUsage,
} from '../command-line/command.ts'
import { type StopSignals, unannounced, untilStopped } from '../terminal/signals.ts'

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
  latency: durationValue('Wait before every response, for example 200ms [0]'),
  'ms-per-row': numberValue('What each row of a response adds to that [0]'),
  'gateway-timeout': durationValue('Longer responses become 504, for example 30s [none]'),
})

const TROUBLE = grouped('Trouble:', {
  'error-rate': numberValue('Share of searches that fail with 503 [0]'),
  'invalid-rate': numberValue('Share of items that break the schema [0]'),
  'empty-page-rate': numberValue('Share of empty pages [0]'),
  'token-lifetime': durationValue('Until tokens end, for example 30s [1h, the ready one never]'),
})

const FLAGS = { ...SERVED, ...LIMITS, ...TROUBLE }

const OPTIONS = {
  port: 'port',
  records: 'records',
  seed: 'seed',
  token: 'token',
  domain: 'domains',
  'public-fields': 'publicFields',
  from: 'from',
  until: 'until',
  'requests-per-second': 'requestsPerSecond',
  'basic-requests-per-second': 'basicRequestsPerSecond',
  quota: 'quota',
  'rows-per-search': 'rowsPerSearch',
  latency: 'latencyMs',
  'ms-per-row': 'msPerRow',
  'gateway-timeout': 'gatewayTimeoutMs',
  'error-rate': 'errorRate',
  'invalid-rate': 'invalidRate',
  'empty-page-rate': 'emptyPageRate',
  'token-lifetime': 'tokenLifetimeMs',
} as const satisfies Record<keyof typeof FLAGS, keyof SandboxOptions>

export const sandbox = command({
  flags: FLAGS,
  examples: [
    ['$0 sandbox --records 5000', 'Then run a pipeline of its domains against it'],
    ['$0 sandbox --port 0 --requests-per-second 0', 'On a free port, without a rate limit'],
  ],
  async run(args, io) {
    const domains = args.domain && [...new Set(args.domain)]
    const given = Object.entries(OPTIONS).map(([flag, option]) => [option, Reflect.get(args, flag)])
    const options = { ...Object.fromEntries(given), domains }
    const serve = async ({ stop }: StopSignals): Promise<void> => {
      const service = await startSandbox(options).catch((error: unknown) => {
        throw asFlag(error)
      })
      try {
        await io.stdout.line(sandboxBanner(service, args.domain))
        if (!stop.aborted) await once(stop, 'abort')
      } finally {
        await service.close()
      }
    }
    await untilStopped(io, serve, unannounced)
  },
})

/** The error of an option that is out of range, with the name of its flag. */
function asFlag(error: unknown): unknown {
  const cause = error instanceof Error ? error.cause : null
  if (!(cause instanceof SandboxOptionError)) return error
  const [flag = cause.option] = Object.entries(OPTIONS).find(([, option]) => option === cause.option) ?? []
  return wrongUsage(`--${flag}: expected ${cause.expected}`, 'See `spillway sandbox --help`.')
}
