import type { Sandbox } from './start-sandbox.ts'

/**
 * What `spillway sandbox` prints first: lines that a shell can evaluate, base URL and token at the top,
 * then a hint as a comment. Ends without a newline.
 */
export function sandboxBanner(sandbox: Pick<Sandbox, 'origin' | 'baseUrl' | 'token' | 'apiKey'>): string {
  return [
    `SPILLWAY_BASE_URL=${sandbox.baseUrl}`,
    `SPILLWAY_TOKEN=${sandbox.token}`,
    `SPILLWAY_API_KEY=${sandbox.apiKey}`,
    `SPILLWAY_TOKEN_URL=${sandbox.origin}/tokens/generate`,
    '# Made-up data. Export these variables in another shell and run: spillway run pipelines/demo.yaml',
  ].join('\n')
}
