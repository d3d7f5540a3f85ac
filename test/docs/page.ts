import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CLI } from '../support/run-cli.ts'

export const ROOT = join(import.meta.dirname, '../..')

export const PAGES = ['README.md', ...pagesBelow('docs')]

function pagesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
}

export const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8')

/** A fenced block of a page of the documentation. */
export type Block = {
  readonly language: string
  readonly text: string
  /** The headings that it stands below, from the second level on. */
  readonly under: readonly string[]
}

export function blocksOf(page: string): readonly Block[] {
  const blocks: Block[] = []
  let under: string[] = []
  let open: { language: string; lines: string[] } | null = null
  for (const line of textOf(page).split('\n')) {
    if (open === null) {
      const [, marks = '', title = ''] = /^(##+) (.*)$/.exec(line) ?? []
      if (marks !== '') under = [...under.slice(0, marks.length - 2), title]
      else if (line.startsWith('```')) open = { language: line.slice(3), lines: [] }
    } else if (line === '```') {
      blocks.push({ language: open.language, text: `${open.lines.join('\n')}\n`, under })
      open = null
    } else open.lines.push(line)
  }
  return blocks
}

export function blockUnder(page: string, heading: string, language: string): string {
  const found = blocksOf(page).filter((block) => block.under.includes(heading) && block.language === language)
  if (found.length !== 1) throw new Error(`${found.length} blocks of ${language} below ${heading}`)
  return found[0]!.text
}

/** A folder with an executable `spillway`. @param script what it does; left out: what the built command does */
export function commandFolder(folder: string, script = `exec '${process.execPath}' '${CLI}' "$@"`): string {
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'spillway'), `#!/bin/sh\n${script}\n`)
  chmodSync(join(bin, 'spillway'), 0o755)
  return bin
}
