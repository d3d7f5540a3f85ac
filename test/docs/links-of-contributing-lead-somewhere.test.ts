import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT, textOf } from './page.ts'

/** `` [`symbol`](path) ``: a place in the source. */
const LINKS = [...textOf('CONTRIBUTING.md').matchAll(/\[`(\w+)`\]\(([^)#\s]+)\)/g)].map(
  ([, symbol = '', path = '']) => ({ symbol, path }),
)

it.each(LINKS)('$symbol is declared in $path', ({ symbol, path }) => {
  expect(existsSync(join(ROOT, path))).toBe(true)
  expect(readFileSync(join(ROOT, path), 'utf8')).toMatch(
    new RegExp(
      `^(?:export )?(?:async )?(?:const|function|type|class) ${symbol}\\b|^export (?:\\{|type).*\\b${symbol}\\b`,
      'm',
    ),
  )
})

it('every kind of part has its links', () => {
  expect(LINKS.length).toBeGreaterThan(30)
})
