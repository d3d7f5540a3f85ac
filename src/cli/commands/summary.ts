import { rulesOf, SUMMARY_PAGE_PATH } from '../../core/index.ts'
import { summarizeDataSet } from '../../data-set/index.ts'
import { choiceOf, flag } from '../command-line/command.ts'
import { changing, dataSetCommand } from '../command-line/pipeline-options.ts'
import { verdictLines } from '../results/verdict.ts'
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
    return changing(io, async (options) => {
      const found = await summarizeDataSet(dataSet, format, options)
      const { rows, shards, hasFacts, verdict, markdown } = found
      const { complete } = verdict
      const path = `${pipeline.load.path}/${SUMMARY_PAGE_PATH}`
      if (!hasFacts && rulesOf(pipeline.extract.resource).holdsPeople)
        io.screen.write('DuckDB is not installed, so the summary has nothing that only rows tell.\n')
      if (format === 'markdown') await io.stdout.line(markdown)
      else
        await io.stdout.result(json, { pipeline: pipeline.name, report: path, rows, shards, complete }, [
          `${shownPath(path, io.cwd)}: ${counted(rows, 'row')}, ${counted(shards, 'shard')}`,
          ...verdictLines(verdict, io.stdout.style),
        ])
    })
  },
})
