import { type Verification, verifyDataSet } from '../../run/index.ts'
import { command } from '../command.ts'
import { DONE, FAILED } from '../exit-code.ts'
import { pipelineFrom, pipelineOptions } from '../pipeline-options.ts'
import { plainJson, plainLine } from '../plain-text.ts'
import { count, counted } from '../quantities.ts'
import { type Style, styleFor, wantsColour } from '../style.ts'

// As often as the eye can follow.
const REDRAW_MS = 100

export const verify = command({
  options: (yargs) =>
    pipelineOptions(yargs)
      .options({ json: { type: 'boolean', default: false, describe: 'Print the result as JSON' } })
      .example('$0 verify pipeline.yaml', 'Sizes, checksums, rows, columns, masking'),
  async run(args, io) {
    const pipeline = await pipelineFrom(args.pipeline, args, io)
    const { screen, stdout } = io
    let shards = 0
    let drawnMs = 0
    const result = await verifyDataSet(pipeline, (path) => {
      shards++
      const nowMs = performance.now()
      if (!screen.canRedraw || nowMs - drawnMs < REDRAW_MS) return
      drawnMs = nowMs
      screen.show(`shard ${count(shards)}: ${plainLine(path)}`.slice(0, screen.columns - 1))
    }).finally(() => screen.clear())
    const style = styleFor(wantsColour(stdout.terminal, io.env))
    await stdout.line(args.json ? plainJson(result) : verificationText(result, pipeline.name, style))
    return result.ok ? DONE : FAILED
  },
})

function verificationText({ ok, shards, rows, problems }: Verification, name: string, style: Style): string {
  const read = `${counted(shards, 'shard')}, ${counted(rows, 'row')}`
  if (ok) return `${style('bold', name)}: ${style('green', 'all is as it should be')}: ${read}`
  return [
    `${style('bold', name)}: ${style('red', counted(problems.length, 'problem'))} in ${read}`,
    ...problems.map(({ path, problem }) => `  ${plainLine(path)}  ${plainLine(problem)}`),
  ].join('\n')
}
