import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { starterPipeline } from '../../config/index.ts'
import { ExportError } from '../../core/index.ts'
import { command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { shellWord } from '../shell.ts'

export const init = command({
  options: (yargs) =>
    yargs
      .positional('file', {
        type: 'string',
        default: 'spillway.yaml',
        describe: 'Where to; never overwritten',
      })
      .example('$0 init acme.yaml', 'A starter under that name'),
  async run({ file }, { cwd, stdout }) {
    try {
      await writeFile(resolve(cwd, file), starterPipeline(), { flag: 'wx', mode: 0o600 })
    } catch (error) {
      throw notWritten(file, error)
    }
    const name = shellWord(file)
    await stdout.line(
      [
        `${file} is written. What comes next:`,
        '  export SPILLWAY_BASE_URL=…   host and prefix of the service',
        '  export SPILLWAY_TOKEN=…      an access token',
        `  spillway check ${name}`,
        `  spillway plan ${name}`,
        `  spillway run ${name}`,
        'No access at hand? `spillway sandbox` serves made-up data.',
      ].join('\n'),
    )
    return DONE
  },
})

function notWritten(file: string, cause: unknown): ExportError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error'
  if (code === 'EEXIST') {
    return new ExportError('config', 'There is such a file already', file, 'Choose another name.', { cause })
  }
  return new ExportError(
    'config',
    `The file can not be written: ${code}`,
    file,
    'Choose a folder that is there and can be written.',
    { cause },
  )
}
