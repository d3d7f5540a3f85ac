/**
 * `npm run screenshot`: renders docs/images/report.png from the summary page of the demo. It needs Chromium
 * (on Debian: `apt install chromium`).
 *
 *   --browser PATH   a Chromium-based browser (/usr/bin/chromium)
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { thoroughPackage } from '../test/thorough/packages.mjs'
import { CLI } from './measure.mjs'

const { values: options } = parseArgs({
  options: { browser: { type: 'string', default: '/usr/bin/chromium' } },
})

const folder = mkdtempSync(join(tmpdir(), 'spillway-screenshot-'))
const images = join(import.meta.dirname, '../docs/images')
try {
  execFileSync(process.execPath, [CLI, 'demo'], { cwd: folder, stdio: 'ignore' })
  const { chromium } = await thoroughPackage('playwright-core')
  const browser = await chromium.launch({ executablePath: options.browser, args: ['--no-sandbox'] })
  const page = await browser.newPage({ viewport: { width: 1000, height: 1360 } })
  await page.goto(`file://${join(folder, 'output/demo/_report.html')}`)
  mkdirSync(images, { recursive: true })
  await page.screenshot({ path: join(images, 'report.png') })
  await browser.close()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
