import type { KeyObject } from 'node:crypto'
import { checkRequirements, knownNamingKey, readNamingKey, readVerifyingKey } from '../../config/index.ts'
import { ExportError, type Pipeline, parseInstant } from '../../core/index.ts'
import { planRepair, type Repair, type Verification, verifyDataSet } from '../../run/index.ts'
import { command } from '../command-line/command.ts'
import { givenFlags } from '../command-line/given-flags.ts'
import type { Io } from '../command-line/io.ts'
import { pipelineFrom, pipelineOptions } from '../command-line/pipeline-options.ts'
import { verificationLines } from '../results/verification.ts'
import { confirm } from '../terminal/ask.ts'
import { DONE, FAILED } from '../terminal/exit-code.ts'
import { plainJson, plainLine } from '../terminal/plain-text.ts'
import { count, counted } from '../terminal/quantities.ts'
import { shownPath } from '../terminal/shown-path.ts'
import { announceStop } from '../terminal/signals.ts'
import { styleFor, wantsColour } from '../terminal/style.ts'
import { exportPipeline } from '../work/export-pipeline.ts'

// As often as the eye can follow.
const REDRAW_MS = 100

export const verify = command({
  options: (yargs) =>
    pipelineOptions(yargs)
      .options({
        json: { type: 'boolean', default: false, describe: 'Print the result as JSON' },
        all: {
          type: 'boolean',
          default: false,
          describe: 'A line for each problem instead of each cause',
        },
        fix: {
          type: 'boolean',
          default: false,
          describe: 'Export anew what is damaged; says what it costs and asks first',
        },
        signature: {
          type: 'boolean',
          default: false,
          describe: 'See as well whether the manifest is signed under the key given by --key',
        },
        key: {
          type: 'string',
          requiresArg: true,
          describe: 'With --signature: file of the public Ed25519 key, PEM',
        },
        'not-before': {
          type: 'string',
          requiresArg: true,
          describe: 'With --signature: the last run that is signed has to have ended by then or later',
        },
        complete: {
          type: 'boolean',
          default: false,
          describe: 'Exit 1 as well where not everything that the file plans is exported',
        },
        yes: { type: 'boolean', default: false, describe: 'Do not ask' },
        'allow-plaintext': {
          type: 'boolean',
          default: false,
          describe: 'With --fix: consent to transform.secret: plaintext',
        },
        'no-progress': { type: 'boolean', default: false, describe: 'With --fix: no progress line' },
      })
      .example('$0 verify pipeline.yaml', 'Sizes, checksums, rows, columns, masking')
      .example('$0 verify pipeline.yaml --fix', 'Export damaged shards anew')
      .example('$0 verify pipeline.yaml --complete', 'For scripts: exit 1 unless all is exported, too')
      .example('$0 verify pipeline.yaml --signature --key pub.pem', 'And that it is what was signed'),
  async run(args, io) {
    const signedBy = await keyOf(args, io)
    const notBeforeMs = notBefore(args)
    const pipeline = await pipelineFrom(args.pipeline, args, io)
    const { screen, stdout } = io
    let shards = 0
    let drawnMs = 0
    const onShard = (path: string): void => {
      shards++
      const nowMs = performance.now()
      if (!screen.canRedraw || nowMs - drawnMs < REDRAW_MS) return
      drawnMs = nowMs
      screen.show(`shard ${count(shards)}: ${plainLine(path)}`.slice(0, screen.columns - 1))
    }
    const maskKey = await knownNamingKey(pipeline, io)
    const options = { onShard, signedBy, notBeforeMs, maskKey }
    const result = await verifyDataSet(pipeline, options).finally(() => screen.clear())
    const style = styleFor(wantsColour(stdout.terminal, io.env))
    if (args.json) await stdout.line(plainJson(result))
    else
      await stdout.lines(
        verificationLines(result, {
          name: pipeline.name,
          all: args.all,
          signature: signedBy === null ? null : { notBefore: args.notBefore ?? null },
          style,
        }),
      )
    if (result.ok) return args.complete && !result.complete ? FAILED : DONE
    return args.fix ? await fix(pipeline, result, args, io) : FAILED
  },
})

type SignatureArgs = { readonly signature: boolean; readonly key?: string | undefined; readonly fix: boolean }

/** The key that the manifest has to be signed under; null: its signature is not asked for. */
async function keyOf({ signature, key, fix }: SignatureArgs, io: Io): Promise<KeyObject | null> {
  if (signature !== (key !== undefined)) throw togetherOnly()
  if (key === undefined) return null
  if (fix) throw signatureAndFix()
  return readVerifyingKey(key, io)
}

/** Epoch ms; null: not asked for. */
function notBefore({
  signature,
  notBefore,
}: {
  signature: boolean
  notBefore?: string | undefined
}): number | null {
  if (notBefore === undefined) return null
  if (!signature) {
    const next = 'Give both: `verify pipeline.yaml --signature --key pub.pem --not-before 2024-07-01`.'
    throw new ExportError('config', '--not-before goes with --signature', '', next)
  }
  const at = parseInstant(DATE.test(notBefore) ? `${notBefore}T00:00:00Z` : notBefore)
  if (at !== null) return at / 1000
  const next = 'Give a date or a time in UTC: 2024-07-01, 2024-07-01T06:00:00Z.'
  throw new ExportError('config', '--not-before is no date and no time', '', next)
}

const DATE = /^\d{4}-\d\d-\d\d$/

function togetherOnly(): ExportError {
  const next = 'Give both: `verify pipeline.yaml --signature --key pub.pem`.'
  return new ExportError('config', '--signature and --key go together', '', next)
}

function signatureAndFix(): ExportError {
  const what =
    '--signature and --fix do not go together: what is mended gets a new manifest, which nobody has signed'
  return new ExportError('config', what, '', 'Use --fix alone, then `sign` again.')
}

type FixArgs = {
  readonly yes: boolean
  readonly allowPlaintext: boolean
  readonly json: boolean
  readonly noProgress: boolean
}

/** Runs the pipeline after it invalidates what is damaged. @returns the exit code of that run */
async function fix(pipeline: Pipeline, { problems }: Verification, args: FixArgs, io: Io): Promise<number> {
  const { allowPlaintext, json, noProgress } = args
  await checkRequirements(pipeline, { env: io.env, cwd: io.cwd, allowPlaintext })
  const repair = await planRepair(pipeline, problems, Date.now(), await readNamingKey(pipeline, io))
  if (!args.yes) await askToFix(pipeline, repair, io)
  const signals = io.signals.listen((signal) => announceStop(signal, io.screen))
  const settings = {
    allowPlaintext,
    failFast: false,
    fresh: false,
    redo: repair.redo,
    onShard: () => {},
    json,
    noProgress,
    again: null,
    flags: givenFlags(args),
  }
  try {
    return await exportPipeline(pipeline, settings, signals, io)
  } finally {
    signals.release()
  }
}

async function askToFix(pipeline: Pipeline, { redo, rows, shards, pages }: Repair, io: Io): Promise<void> {
  const { screen, cwd } = io
  const cost =
    redo.length === 0
      ? 'A run mends this; nothing needs to be exported anew.'
      : `This removes ${counted(shards, 'shard')} with ${counted(rows, 'row')} and exports them anew; they took ${counted(pages, 'page')}.`
  if (!process.stdin.isTTY || !screen.stream.isTTY) {
    throw new ExportError(
      'config',
      `--fix changes the data set, and there is no terminal to ask on. ${cost}`,
      shownPath(pipeline.load.path, cwd),
      'Add --yes if that is what you want.',
    )
  }
  screen.write(`${cost}\n`)
  if (await confirm('Go on?', screen)) return
  throw new ExportError('config', 'Nothing was changed', '', 'Run `verify --fix` again any time.')
}
