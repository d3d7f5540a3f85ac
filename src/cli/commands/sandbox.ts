import { once } from 'node:events'
import { ExportError } from '../../core/index.ts'
import {
  type Fault,
  type Sandbox,
  type SandboxOptions,
  sandboxBanner,
  startSandbox,
} from '../../sandbox/index.ts'
import { command } from '../command-line/command.ts'
import { DONE } from '../terminal/exit-code.ts'

export const sandbox = command({
  options: (yargs) =>
    yargs
      .options({
        port: { type: 'number', default: 8787, requiresArg: true, describe: 'On 127.0.0.1; 0: a free one' },
        records: { type: 'number', requiresArg: true, describe: 'Credentials per domain [1000]' },
        seed: { type: 'string', requiresArg: true, describe: 'Another seed, other data' },
        token: { type: 'string', requiresArg: true, describe: 'The token that is accepted [random]' },
        domain: { type: 'string', array: true, requiresArg: true, describe: 'Domain with data; repeatable' },
        'public-fields': {
          type: 'boolean',
          describe: 'With the fields that only the public documentation has, such as event_uid',
        },
        from: { type: 'string', requiresArg: true, describe: 'First import time [2024-01-01]' },
        until: { type: 'string', requiresArg: true, describe: 'End of import times [2025-01-01]' },
      })
      .group(
        ['port', 'records', 'seed', 'token', 'domain', 'public-fields', 'from', 'until'],
        'What is served:',
      )
      .options({
        'requests-per-second': {
          type: 'number',
          requiresArg: true,
          describe: 'Search tier; 0: no limit [1]',
        },
        'basic-requests-per-second': {
          type: 'number',
          requiresArg: true,
          describe: 'Everything else; 0: no limit [4]',
        },
        quota: { type: 'number', requiresArg: true, describe: 'Searches left this month [1000000]' },
        'rows-per-search': {
          type: 'number',
          requiresArg: true,
          describe: 'Rows that one search covers; 0: a page is one search [100]',
        },
        latency: {
          type: 'number',
          requiresArg: true,
          describe: 'Wait before every answer, in milliseconds [0]',
        },
        'ms-per-row': {
          type: 'number',
          requiresArg: true,
          describe: 'What each row of an answer adds to that [0]',
        },
        'gateway-timeout': {
          type: 'string',
          requiresArg: true,
          describe: 'What takes longer is answered 504, such as 30s [none]',
        },
      })
      .group(
        [
          'requests-per-second',
          'basic-requests-per-second',
          'quota',
          'rows-per-search',
          'latency',
          'ms-per-row',
          'gateway-timeout',
        ],
        'Limits:',
      )
      .options({
        'error-rate': {
          type: 'number',
          requiresArg: true,
          describe: 'Share of searches answered 503 [0]',
        },
        'invalid-rate': {
          type: 'number',
          requiresArg: true,
          describe: 'Share of items that break the schema [0]',
        },
        'empty-page-rate': { type: 'number', requiresArg: true, describe: 'Share of empty pages [0]' },
        'token-lifetime': { type: 'number', requiresArg: true, describe: 'Seconds until tokens end' },
      })
      .group(['error-rate', 'invalid-rate', 'empty-page-rate', 'token-lifetime'], 'Trouble:')
      .example('$0 sandbox --records 5000', 'Then run pipelines/demo.yaml against it')
      .example('$0 sandbox --port 0 --requests-per-second 0', 'On a free port, without a rate limit'),
  async run(args, io) {
    const signals = io.signals.listen(() => {})
    const service = await start({
      port: args.port,
      ...given('records', args.records),
      ...given('seed', args.seed),
      ...given('token', args.token),
      ...given('domains', args.domain),
      ...given('publicFields', args.publicFields),
      ...given('from', args.from),
      ...given('until', args.until),
      ...given('requestsPerSecond', args.requestsPerSecond),
      ...given('basicRequestsPerSecond', args.basicRequestsPerSecond),
      ...given('quota', args.quota),
      ...given('rowsPerSearch', args.rowsPerSearch),
      ...given('latencyMs', args.latency),
      ...given('msPerRow', args.msPerRow),
      ...given('gatewayTimeoutMs', milliseconds(args.gatewayTimeout)),
      ...given('invalidRate', args.invalidRate),
      ...given('emptyPageRate', args.emptyPageRate),
      ...(args.tokenLifetime === undefined ? {} : { tokenLifetimeMs: args.tokenLifetime * 1000 }),
      faults: errors(args.errorRate ?? 0),
    })
    try {
      await io.stdout.line(sandboxBanner(service))
      if (!signals.stop.aborted) await once(signals.stop, 'abort')
    } finally {
      await service.close()
      signals.release()
    }
    // A server that is told to stop has done what it was there for.
    return DONE
  },
})

function given<Key extends keyof SandboxOptions>(
  key: Key,
  value: SandboxOptions[Key],
): { [K in Key]?: NonNullable<SandboxOptions[K]> } {
  return value === undefined ? {} : ({ [key]: value } as { [K in Key]: NonNullable<SandboxOptions[K]> })
}

function milliseconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(text) ?? []
  if (number !== undefined) return Number(number) * { ms: 1, s: 1000, m: 60_000 }[unit ?? 's']!
  const what = '--gateway-timeout is a duration such as 500ms, 30s or 1m'
  throw new ExportError('config', what, '', 'See `spillway sandbox --help`.')
}

function errors(rate: number): readonly Fault[] {
  if (rate >= 0 && rate <= 1) return [{ kind: 'status', status: 503, rate }]
  throw new ExportError('config', '--error-rate is a share from 0 to 1', '', 'See `spillway sandbox --help`.')
}

async function start(options: SandboxOptions): Promise<Sandbox> {
  try {
    return await startSandbox(options)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const taken = 'code' in error && error.code === 'EADDRINUSE'
    const next = taken
      ? 'Choose another with --port; --port 0 takes a free one.'
      : 'See `spillway sandbox --help`.'
    const what = taken ? `Port ${options.port} is taken` : error.message
    throw new ExportError('config', what, '', next, { cause: error })
  }
}
