import { defineConfig } from 'rolldown'

// Of undici the command needs two dispatchers, which its entry point loads along with fetch, WebSocket and mocks:
// a tenth of a second that every run would pay.
const onlyDispatchers = {
  name: 'only-dispatchers',
  resolveId: (id) => (id === 'undici' ? '\0undici' : null),
  load: (id) =>
    id === '\0undici'
      ? `export { default as Agent } from 'undici/lib/dispatcher/agent.js'
         export { default as EnvHttpProxyAgent } from 'undici/lib/dispatcher/env-http-proxy-agent.js'`
      : null,
}

// The command is bundled with what it needs: finding and opening three hundred files takes longer than most
// commands do. See docs/decisions/0007-bundled-command.md.
export default defineConfig({
  input: [
    'src/cli/main.ts',
    'src/disk/look-worker.ts',
    'src/run/cpu/decode-worker.ts',
    'src/run/cpu/encode-worker.ts',
  ],
  platform: 'node',
  logLevel: 'warn',
  // Loaded only when a pipeline asks for it; not made to be bundled.
  external: ['parquetjs-lite', '@duckdb/node-api', 'pg', 'pg-copy-streams'],
  plugins: [onlyDispatchers],
  output: { dir: 'dist/cli', format: 'esm', chunkFileNames: '[name]-[hash].js' },
})
