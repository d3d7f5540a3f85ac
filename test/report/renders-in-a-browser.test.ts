import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { summaryPage } from '../../src/report/index.ts'
import { SOME_REPORT } from './some-report.ts'

// Debian's path. Without it, these tests are skipped.
const CHROMIUM = '/usr/bin/chromium'
const TITLE =
  'acme-backfill: INCOMPLETE: 6 of 144 partitions failed, 6 not finished, 12 not begun; the figures below are too low'
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

describe.skipIf(!existsSync(CHROMIUM))(`in ${CHROMIUM}`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  })
  afterAll(() => browser.close())

  it.each([
    { colorScheme: 'light', width: 1200, media: 'screen' },
    { colorScheme: 'dark', width: 1200, media: 'screen' },
    { colorScheme: 'dark', width: 360, media: 'screen' },
    { colorScheme: 'light', width: 700, media: 'print' },
  ] as const)('is complete and accessible: $colorScheme, $width wide, $media', async (medium) => {
    const { colorScheme, width, media } = medium
    // The page lets no script run, so axe has to bypass the policy.
    const context = await browser.newContext({
      colorScheme,
      viewport: { width, height: 900 },
      bypassCSP: true,
    })
    const page = await context.newPage()
    const noise: string[] = []
    page.on('console', (message) => noise.push(message.text()))
    page.on('pageerror', (error) => noise.push(error.message))
    page.on('request', (request) => noise.push(request.url()))
    page.on('dialog', (dialog) => noise.push(dialog.message()))
    await page.emulateMedia({ media, colorScheme })
    await page.setContent(summaryPage(SOME_REPORT))
    expect(noise).toEqual([])
    expect(await page.title()).toBe(TITLE)
    expect(await page.locator('img').count()).toBe(0)
    const bars = await page.locator('.bars').count()
    expect([bars, await page.locator('.bars:visible').count()]).toEqual([4, 4])
    // Bars leave room for the names beside them: a month is on one line.
    const month = page.locator('.bars tbody th', { hasText: /^2024-01$/ }).first()
    expect((await month.boundingBox())!.height).toBeLessThan(40)
    // Wide elements scroll within themselves.
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    const data = await page.evaluate('JSON.parse(document.getElementById("data").textContent)')
    expect(data).toEqual(SOME_REPORT)
    await page.evaluate('for (const details of document.querySelectorAll("details")) details.open = true')
    await page.evaluate(AXE)
    const { violations } = (await page.evaluate('axe.run()')) as { violations: readonly Violation[] }
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
    await context.close()
  })

  it('lets no script run as delivered, whatever its data', async () => {
    const page = await browser.newPage()
    const name = '<script>document.title = "x"</script>'
    const text = summaryPage(SOME_REPORT).replace('</main>', `${name}</main>`)
    await page.setContent(text)
    expect(await page.title()).toBe(TITLE)
    await page.close()
  })

  it('filters queries by a part of their names, with the one script that its policy names', async () => {
    const [line] = SOME_REPORT.rows.heat!.rows
    const rows = Array.from({ length: 30 }, (_, i) => ({ ...line!, query: `domain.example-${i}.com` }))
    const heat = { ...SOME_REPORT.rows.heat!, rows, folded: 0 }
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
    await page.setContent(summaryPage({ ...SOME_REPORT, rows: { ...SOME_REPORT.rows, heat } }))
    expect(await page.locator('.heat tbody tr:visible').count()).toBe(30)
    await page.getByLabel('Find a query').fill('EXAMPLE-2')
    expect(await page.locator('.heat tbody tr:visible').count()).toBe(11)
    expect(await page.title()).toBe(TITLE)
    await page.close()
  })

  it('fits a table of two years into 1400 pixels', async () => {
    const [line] = SOME_REPORT.rows.heat!.rows
    const two = <T>(all: readonly T[]): T[] => [...all, ...all]
    const columns = Array.from({ length: 24 }, (_, i) =>
      new Date(Date.UTC(2023, i)).toISOString().slice(0, 10),
    )
    const heat = { columns, rows: two([{ ...line!, cells: two(line!.cells) }]), folded: 0 }
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
    await page.setContent(summaryPage({ ...SOME_REPORT, rows: { ...SOME_REPORT.rows, heat } }))
    const box = `document.querySelector('.scroll:has(.heat)')`
    expect(await page.evaluate(`${box}.scrollWidth - ${box}.clientWidth`)).toBe(0)
    await page.close()
  })

  it('fits on paper', async () => {
    const page = await browser.newPage()
    await page.setContent(summaryPage(SOME_REPORT))
    const pdf = await page.pdf({ format: 'A4' })
    const pages = pdf.toString('latin1').match(/\/Type \/Page\b/g) ?? []
    expect(pages.length).toBeGreaterThan(1)
    expect(pages.length).toBeLessThan(8)
    await page.close()
  })
})

type Violation = { readonly id: string; readonly nodes: readonly { readonly html: string }[] }

it('is one page of HTML without external resources', async () => {
  const text = summaryPage(SOME_REPORT)
  expect(text.startsWith('<!doctype html>\n<!-- spillway report -->\n')).toBe(true)
  expect(text).not.toMatch(/<(?:img|link|iframe|object|embed|base)\b/)
  expect(text.match(/<script/g)).toHaveLength(1)
  const own = text.replace(/&#60;img src=|\\u003cimg src=|&lt;img src=/g, '')
  expect(own.match(/\b(?:src|href)=|url\((?!#)/g)).toBeNull()
})
