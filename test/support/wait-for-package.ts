import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { inject } from 'vitest'
import { INSTALLED, OUTCOME } from './installed.ts'

const folder = inject('installed')
if (folder !== undefined) {
  const outcome = await outcomeIn(`${folder}-${OUTCOME}`)
  if (outcome !== INSTALLED) throw new Error(`The package could not be installed: ${outcome}`)
}

async function outcomeIn(file: string): Promise<string> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => '')
    if (text !== '') return text
    await sleep(50)
  }
}
