import { rulesOf, SUMMARY_PAGE_PATH, systemClock } from '../../core/index.ts'
import { summarizeDataSet } from '../../data-set/index.ts'
import { version } from '../../package/index.ts'
import { choiceOf, flag } from '../command-line/command.ts'
import { dataSetCommand } from '../command-line/pipeline-options.ts'
import { verdictLines } from '../results/verdict.ts'
import { untilStopped } from '../terminal/signals.ts'
import { counted, shownPath } from '../terminal/text.ts'

export const summary = dataSetCommand('read', {
  flags: {
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
  async run({ format, json }, io, dataSet) {
    const { pipeline } = dataSet
    return untilStopped(io, async ({ stop }) => {
      const warn = (message: string): void => void io.screen.write(`${message}\n`)
      const found = await summarizeDataSet(dataSet, { clock: systemClock, stop, format, warn, version })
      const { rows, shards, hasFacts, verdict, markdown } = found
      const { complete } = verdict
      const path = `${pipeline.load.path}/${SUMMARY_PAGE_PATH}`
      if (!hasFacts && rulesOf(pipeline.extract.resource).holdsPeople)
        warn('DuckDB is not installed, so the summary has nothing that only rows tell.')
      if (format === 'markdown') await io.stdout.line(markdown)
      else
        await io.stdout.result(json, { pipeline: pipeline.name, report: path, rows, shards, complete }, [
          `${shownPath(path, io.cwd)}: ${counted(rows, 'row')}, ${counted(shards, 'shard')}`,
          ...verdictLines(verdict, io.stdout.style),
        ])
    })
  },
})
