import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { summaryPage } from '../../src/summary/index.ts'
import { some } from '../support/thorough.ts'
import { thoroughPackage, thoroughPath } from '../thorough/packages.mjs'
import { DOMAINS, SOME_INPUT, withManifest } from './some-report.ts'

const { chromium } = await thoroughPackage('playwright-core')
type Browser = Awaited<ReturnType<typeof thoroughPackage>>

// Debian's path. Without it, these tests are skipped.
const CHROMIUM = '/usr/bin/chromium'
const TITLE = 'acme-backfill: STOPPED: 2 of 48 partitions failed, 8 not done'

/** Each of these domains in each month of so many years, with 1,234 rows. */
function manyMonths(years: number, domains: readonly string[]) {
  const month = (i: number): string => new Date(Date.UTC(2020, i)).toISOString().slice(0, 10)
  return withManifest(
    {
      partitions: domains.flatMap((domain) =>
        Array.from({ length: 12 * years }, (_, i) => ({
          key: `domain.${domain}/${month(i)}..${month(i + 1)}`,
          state: 'done' as const,
          rows: 1234,
          quarantined: 0,
        })),
      ),
    },
    { rows: null },
  )
}

const AXE = readFileSync(thoroughPath('axe-core/axe.min.js'), 'utf8')

describe.skipIf(!existsSync(CHROMIUM))(`in ${CHROMIUM}`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  })
  afterAll(() => browser.close())

  const media = [
    { colorScheme: 'light', width: 1200, media: 'screen' },
    { colorScheme: 'dark', width: 1200, media: 'screen' },
    { colorScheme: 'dark', width: 360, media: 'screen' },
    { colorScheme: 'light', width: 700, media: 'print' },
  ] as const
  it.each(some(media, 2))('is complete and accessible: $colorScheme, $width wide, $media', async (medium) => {
    const { colorScheme, width, media } = medium
    // The page lets no script run, so axe has to bypass the policy.
    const context = await browser.newContext({
      colorScheme,
      viewport: { width, height: 900 },
      bypassCSP: true,
    })
    const page = await context.newPage()
    const noise: string[] = []
    page.on('console', (message: Browser) => noise.push(message.text()))
    page.on('pageerror', (error: Error) => noise.push(error.message))
    page.on('request', (request: Browser) => noise.push(request.url()))
    page.on('dialog', (dialog: Browser) => noise.push(dialog.message()))
    await page.emulateMedia({ media, colorScheme })
    await page.setContent(summaryPage(SOME_INPUT))
    expect(noise).toEqual([])
    expect(await page.title()).toBe(TITLE)
    expect(await page.locator('img').count()).toBe(0)
    expect([
      await page.locator('.bars:visible').count(),
      await page.locator('.months li:visible').count(),
    ]).toEqual([4, 14])
    // The first screen of a phone has numbers, name and period are a line each.
    const bottomOf = async (selector: string): Promise<number> => {
      const { y, height } = (await page.locator(selector).first().boundingBox())!
      return y + height
    }
    if (media === 'screen') expect(await bottomOf('.figures')).toBeLessThan(640)
    expect((await page.locator('h1').boundingBox())!.height).toBeLessThan(75)
    // Wide elements scroll within themselves.
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    const rows = await page.evaluate('JSON.parse(document.getElementById("rows").textContent)')
    expect(rows).toEqual(SOME_INPUT.rows)
    await page.evaluate(AXE)
    const { violations } = (await page.evaluate('axe.run()')) as { violations: readonly Violation[] }
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
    await context.close()
  })

  it('lets no script run as delivered, whatever its data', async () => {
    const page = await browser.newPage()
    const name = '<script>document.title = "x"</script>'
    const text = summaryPage(SOME_INPUT).replace('</main>', `${name}</main>`)
    await page.setContent(text)
    expect(await page.title()).toBe(TITLE)
    await page.close()
  })

  it('fits a table of two years into 1400 pixels, and a chart of five into a phone', async () => {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
    await page.setContent(summaryPage(manyMonths(2, DOMAINS)))
    const box = `document.querySelector('.scroll:has(.heat)')`
    expect(await page.evaluate(`${box}.scrollWidth - ${box}.clientWidth`)).toBe(0)
    await page.setViewportSize({ width: 360, height: 800 })
    await page.setContent(summaryPage(manyMonths(5, DOMAINS)))
    expect(await page.locator('.months li:visible').count()).toBe(60)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
    await page.close()
  })

  it('fits on pages of A4, and breaks no heading in a word', async () => {
    const page = await browser.newPage()
    await page.setContent(summaryPage(SOME_INPUT))
    const pdf = (await page.pdf({ preferCSSPageSize: true })).toString('latin1')
    const pages = pdf.match(/\/Type \/Page\b/g) ?? []
    expect(pages.length).toBeGreaterThan(1)
    expect(pages.length).toBeLessThan(6)
    expect(pdf).toMatch(/\/MediaBox \[0 0 59[45]\S* 84[12]/)
    await page.emulateMedia({ media: 'print' })
    const breaks = await page.evaluate(
      `[...document.querySelectorAll('h1,h2,thead th')].filter((each) => getComputedStyle(each).overflowWrap === 'anywhere').length`,
    )
    expect(breaks).toBe(0)
    await page.close()
  })
})

type Violation = { readonly id: string; readonly nodes: readonly { readonly html: string }[] }

it('is one page of HTML without external resources', async () => {
  const text = summaryPage(SOME_INPUT)
  expect(text.startsWith('<!doctype html>\n<!-- spillway report -->\n')).toBe(true)
  expect(text).not.toMatch(/<(?:img|link|iframe|object|embed|base)\b/)
  expect(text.match(/<script/g)).toHaveLength(1)
  const own = text.replace(/&#60;img src=|\\u003cimg src=|&lt;img src=/g, '')
  expect(own.match(/\b(?:src|href)=|url\((?!#)/g)).toBeNull()
})
