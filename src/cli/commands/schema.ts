import { pipelineJsonSchema } from '../../pipeline/index.ts'
import { command } from '../command-line/command.ts'

export const schema = command({
  examples: [
    ['$0 schema > pipeline.schema.json', 'Once; then point the editor to it'],
    ['$0 schema | jq .properties.load', 'What can be said in one section'],
  ],
  async run(_args, { stdout }) {
    await stdout.line(JSON.stringify(pipelineJsonSchema(), null, 2))
  },
})
