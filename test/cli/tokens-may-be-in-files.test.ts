import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

const KEYS = [
  ['token_file', 'SPILLWAY_TOKEN'],
  ['api_key_file', 'SPILLWAY_API_KEY'],
] as const
it.each(KEYS)(
  'service.%s names a file beside the pipeline file, and needs no variable',
  async (key, other) => {
    const service = { [key]: 'secrets/acme' }
    const here = await newWorkspace({ service, extract: { domains: ['scatterholt.com'] } })
    const file = join(here.folder, 'secrets/acme')
    mkdirSync(join(here.folder, 'secrets'))
    writeFileSync(file, `${key === 'token_file' ? here.sandbox.token : here.sandbox.apiKey}\n`)
    const bare = here.with({ SPILLWAY_TOKEN: '', SPILLWAY_API_KEY: '' })
    await exits(0, bare.call('check'))
    await exits(0, bare.call('run'))
    const { stdout } = await exits(0, bare.call('check', '--resolved'))
    expect(stdout).toContain(`${key}: ${file}`)

    writeFileSync(file, '\n')
    await exits(2, bare.call('run', '--redo', '*'), `The file ${file} with the token or key is empty`)
    rmSync(file)
    await exits(2, bare.call('run', '--redo', '*'), `The file ${file} with the token or key`)
    await here.write({
      service: { ...service, [`${key.slice(0, -5)}_env`]: other },
      extract: { domains: ['a.example'] },
    })
    await exits(2, bare.call('check'), /expected \w+ or \w+, found both/)
  },
)
