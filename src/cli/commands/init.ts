import { readFile, writeFile } from 'node:fs/promises'
import { parse, resolve } from 'node:path'
import { codeOf, ExportError, shellWord } from '../../core/index.ts'
import { packageFile } from '../../package/index.ts'
import { command } from '../command-line/command.ts'

export const init = command({
  positionals: {
    file: {
      type: 'string',
      default: 'spillway.yaml',
      describe: 'Where to; never overwritten [spillway.yaml]',
    },
  },
  flags: {},
  examples: [
    ['$0 init', 'Into spillway.yaml'],
    ['$0 init acme.yaml', 'Under that name'],
  ],
  async run({ file }, { cwd, stdout }) {
    const starter = await readFile(packageFile('pipelines/starter.yaml'), 'utf8')
    const own = nameFor(file)
    // The comments after it stay in line.
    const text = starter
      .replace(/^name: starter */m, (found) => `name: ${scalar(own)} `.padEnd(found.length))
      .replace(/output\/starter */, (found) => `output/${own} `.padEnd(found.length))
    try {
      await writeFile(resolve(cwd, file), text, { flag: 'wx', mode: 0o600 })
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
  },
})

function nameFor(file: string): string {
  const { name } = parse(file)
  const plain = name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return plain.slice(0, 100).replace(/^-|-$/g, '') || 'pipeline'
}

/** A name as YAML reads it back: `2024`, `1e3`, `true` and `null` would be no texts without quotes. */
function scalar(name: string): string {
  return /^(?:\d.*|true|false|null)$/.test(name) ? `'${name}'` : name
}

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
