import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { codeOf, ExportError, shellWord } from '../../core/index.ts'
import { packageFile } from '../../package/index.ts'
import { pipelineJsonSchema } from '../../pipeline/index.ts'
import { command } from '../command-line/command.ts'
import { DONE } from '../terminal/exit-code.ts'

export const init = command({
  options: (yargs) =>
    yargs
      .positional('file', {
        type: 'string',
        default: 'spillway.yaml',
        describe: 'Where to; never overwritten [spillway.yaml]',
      })
      .example('$0 init', 'Into spillway.yaml')
      .example('$0 init acme.yaml', 'Under that name'),
  async run({ file }, { cwd, stdout }) {
    const starter = await readFile(packageFile('pipelines/starter.yaml'))
    try {
      await writeFile(resolve(cwd, file), starter, { flag: 'wx', mode: 0o600 })
    } catch (error) {
      throw notWritten(file, error)
    }
    const name = shellWord(file)
    await stdout.lines([
      `${file} is written. Next steps:`,
      '  export SPILLWAY_BASE_URL=…   host and prefix of the service',
      '  export SPILLWAY_TOKEN=…      an access token',
      `  spillway check ${name}`,
      `  spillway plan ${name}`,
      `  spillway run ${name}`,
      'No access at hand? `spillway sandbox` serves made-up data.',
    ])
    return DONE
  },
})

function notWritten(file: string, cause: unknown): ExportError {
  const code = codeOf(cause)
  return new ExportError({
    kind: 'config',
    what: code === 'EEXIST' ? 'There is such a file already' : `The file cannot be written: ${code}`,
    where: file,
    next: 'Choose another name, in a folder that is there and can be written.',
    cause,
  })
}

export const schema = command({
  options: (yargs) =>
    yargs
      .example('$0 schema > pipeline.schema.json', 'Once; then point the editor to it')
      .example('$0 schema | jq .properties.load', 'What can be said in one section'),
  async run(_args, { stdout }) {
    await stdout.line(JSON.stringify(pipelineJsonSchema(), null, 2))
    return DONE
  },
})
