import { rulesOf, SUMMARY_PAGE_PATH, systemClock } from '../../core/index.ts'
import { summarizeDataSet } from '../../data-set/index.ts'
import { version } from '../../package/index.ts'
import { choiceOf, command, flag } from '../command-line/command.ts'
import { DATA_SET, dataSetFrom, OUTPUT } from '../command-line/pipeline-options.ts'
import { untilStopped } from '../terminal/signals.ts'
import { counted, plainLine, shownPath } from '../terminal/text.ts'

export const summary = command({
  positionals: { pipeline: DATA_SET },
  flags: {
    output: OUTPUT,
    format: choiceOf(
      ['html', 'markdown'],
      'html',
      'html: the page _report.html; markdown: verdict, figures, failures on stdout',
    ),
    json: flag('Print where the page is as JSON', { excludes: ['format=markdown'] }),
  },
  examples: [
    ['$0 summary pipeline.yaml', 'Whether all is exported, figures, failures, runs: one page of HTML'],
    ['$0 summary pipeline.yaml --format markdown >> "$GITHUB_STEP_SUMMARY"', 'For a job, or a mail'],
  ],
  async run({ pipeline: given, output, format, json }, io) {
    const { pipeline } = await dataSetFrom({ pipeline: given, output }, io)
    return untilStopped(io, async (signals) => {
      const warn = (message: string): void => void io.screen.write(`${message}\n`)
      const options = { clock: systemClock, stop: signals.stop, version, format, warn }
      const { rows, shards, complete, hasFacts, verdict, markdown } = await summarizeDataSet(
        pipeline,
        options,
      )
      const path = `${pipeline.load.path}/${SUMMARY_PAGE_PATH}`
      if (!hasFacts && rulesOf(pipeline.extract.resource).holdsPeople)
        warn('DuckDB is not installed, so the summary has nothing that only rows tell.')
      if (format === 'markdown') await io.stdout.line(markdown)
      else
        await io.stdout.result(json, { pipeline: pipeline.name, report: path, rows, shards, complete }, [
          `${shownPath(path, io.cwd)}: ${counted(rows, 'row')}, ${counted(shards, 'shard')}`,
          `The export is ${plainLine(verdict)}.`,
        ])
    })
  },
})
