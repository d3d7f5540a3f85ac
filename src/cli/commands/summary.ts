import { readNamingKey } from '../../config/index.ts'
import { SUMMARY_PAGE_PATH, systemClock } from '../../core/index.ts'
import { summarizeDataSet } from '../../data-set/index.ts'
import { version } from '../../package/index.ts'
import { command, flag } from '../command-line/command.ts'
import { pipelineOptions, pipelineToRead } from '../command-line/pipeline-options.ts'
import { completenessText } from '../results/summary.ts'
import { DONE } from '../terminal/exit-code.ts'
import { untilStopped } from '../terminal/signals.ts'
import { counted, plainJson, shownPath } from '../terminal/text.ts'

export const summary = command({
  options: (yargs) =>
    pipelineOptions(yargs)
      .options({ json: flag('Print where it is as JSON') })
      .example('$0 summary pipeline.yaml', 'Whether all is exported, scope, result, runs: one page of HTML'),
  async run(args, io) {
    const pipeline = await pipelineToRead(args.pipeline, args, io)
    return untilStopped(io, async (signals) => {
      const { rows, shards, ...completeness } = await summarizeDataSet(pipeline, {
        maskKey: await readNamingKey(pipeline, io),
        clock: systemClock,
        stop: signals.stop,
        version,
        warn: (message) => void io.screen.write(`${message}\n`),
      })
      const path = `${pipeline.load.path}/${SUMMARY_PAGE_PATH}`
      await io.stdout.line(
        args.json
          ? plainJson({
              pipeline: pipeline.name,
              report: path,
              rows,
              shards,
              complete: completeness.complete,
            })
          : `${shownPath(path, io.cwd)}: ${counted(rows, 'row')}, ${counted(shards, 'shard')}\n${completenessText(completeness)}.`,
      )
      return DONE
    })
  },
})
