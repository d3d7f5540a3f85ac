/**
 * `npm run build` and a test take the walker's WebAssembly from here: AssemblyScript's compiler makes it of the sources
 * in this folder. Run as a command, this writes it to where the decoder imports it from.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import asc from 'assemblyscript/asc'

export const WRITTEN = join(import.meta.dirname, '../item-walker-wasm.ts')

const OPTIONS = ['--enable', 'simd', '--runtime', 'stub', '--noAssert', '--initialMemory', '27', '-O3']

/** The module that holds the walker, as TypeScript. @throws Error when the sources do not compile */
export async function assemble() {
  let binary
  const errors = []
  const { error } = await asc.main(['item-walker.ts', '--outFile', 'walker.wasm', ...OPTIONS], {
    readFile: (name) => {
      try {
        return readFileSync(join(import.meta.dirname, name), 'utf8')
      } catch {
        return null
      }
    },
    writeFile: (name, contents) => {
      if (name === 'walker.wasm') binary = contents
    },
    listFiles: () => [],
    stderr: { write: (text) => errors.push(text) },
  })
  if (error !== null || binary === undefined) throw new Error(errors.join(''), { cause: error })
  const lines = Buffer.from(binary)
    .toString('base64')
    .match(/.{1,104}/g)
  return [
    '// Made by `npm run build` from assembly/: change that.',
    'export const ITEM_WALKER = `',
    ...lines,
    '`',
    '',
  ].join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(WRITTEN, await assemble())
