import { Composer, type Document, Lexer, LineCounter, Parser, type YAMLError } from 'yaml'
import { Problems } from '../problems/problems.ts'
import type { Tree } from '../problems/tree.ts'
import { readNodes } from './read-nodes.ts'

// Composing is recursive, and a regular expression compiled near the end of the stack kills the process; and
// it takes some seconds for a million small tokens. Both limits are far from any real pipeline.
const MAX_DEPTH = 100
const MAX_TOKENS = 250_000

/** The text of a file, its name for messages and its absolute path. */
export type NamedText = {
  readonly file: string
  readonly path: string
  readonly text: string
  /** A program made it: its lines mean nothing to anybody. */
  readonly isMade?: boolean
}

/**
 * Reads YAML 1.2 (core schema) text into plain values with a location for each. Duplicate keys and bad aliases
 * are collected, since the rest of the file can still be checked.
 * @throws ExportError 'config' with every syntax error
 */
export function parseYaml({ file, path, text, isMade }: NamedText): { tree: Tree; problems: Problems } {
  const lines = new LineCounter()
  const tree: Tree = {
    source: { file, path, lineAt: isMade === true ? null : (offset) => lines.linePos(offset) },
    root: undefined,
    locations: new Map(),
  }
  const problems = new Problems(tree)
  const document = compose(text, lines, problems)
  if (document !== null) reportSyntax(document, text, lines, problems)
  if (!problems.none || document === null) throw problems.error()
  tree.root = readNodes(document.contents, tree, problems)
  return { tree, problems }
}

function compose(text: string, lines: LineCounter, problems: Problems): Document.Parsed | null {
  lines.addNewLine(0)
  const parser = new Parser(lines.addNewLine)
  const tokens = []
  let count = 0
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme))
    if (parser.stack.length > MAX_DEPTH) {
      problems.addAt(parser.offset, `nested deeper than ${MAX_DEPTH} levels`)
      return null
    }
    if (++count > MAX_TOKENS) {
      problems.addAt(
        0,
        'too many values for a pipeline file; list domains in a file of their own and name it in `extract.domains_file`',
      )
      return null
    }
  }
  tokens.push(...parser.end())
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    resolveKnownTags: false,
    uniqueKeys: false,
    merge: false,
  })
  const [first, second] = [...composer.compose(tokens, true, text.length)]
  if (second !== undefined) {
    problems.addAt(second.range[0], 'a second document begins here; a pipeline file holds one')
    return null
  }
  return first ?? null
}

/** The parser's own messages quote the file, and the file may hold a secret: only the kind of error is kept. */
function reportSyntax(document: Document.Parsed, text: string, lines: LineCounter, problems: Problems): void {
  const seen = new Set<number>()
  for (const error of [...document.errors, ...document.warnings]) {
    const sentence = syntaxSentence(error.code)
    const offset = Math.min(error.pos[0], text.length)
    const { line } = lines.linePos(offset)
    // One slip makes the parser stumble several times on the same line.
    if (seen.has(line)) continue
    seen.add(line)
    const start = lines.lineStarts[line - 1] ?? 0
    const end = lines.lineStarts[line] ?? text.length
    // The parser speaks of what a tab makes of its line, or of the one above, not of the tab.
    const tabbed = [start, end].find((offset) => startsWithTab(text, offset))
    if (tabbed !== undefined) {
      seen.add(lines.linePos(tabbed).line)
      problems.addAt(tabbed, `not valid YAML: ${syntaxSentence('TAB_AS_INDENT')}`)
      continue
    }
    const around = text.slice(start, Math.min(end, start + 1000))
    const hint = around.includes('${') ? '; inside { } and [ ] a variable reference must stand in quotes' : ''
    problems.addAt(offset, `not valid YAML: ${sentence}${hint}`)
  }
}

function startsWithTab(text: string, offset: number): boolean {
  return /^ *\t/.test(text.slice(offset, offset + 100))
}

function syntaxSentence(code: YAMLError['code']): string {
  switch (code) {
    case 'TAB_AS_INDENT':
      return 'tabs cannot indent; use spaces'
    case 'BAD_INDENT':
      return 'wrong indentation'
    case 'MISSING_CHAR':
      return 'a quote, a bracket, a comma or the space after a colon is missing'
    case 'BAD_DQ_ESCAPE':
      return 'unknown escape in a double-quoted text'
    case 'BAD_SCALAR_START':
      return 'a text that begins like this must be quoted'
    case 'MULTILINE_IMPLICIT_KEY':
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'a key must stand on one line and be followed by a colon and a value'
    case 'BLOCK_IN_FLOW':
      return 'a block cannot stand inside { } or [ ]'
    case 'TAG_RESOLVE_FAILED':
    case 'BAD_COLLECTION_TYPE':
    case 'MULTIPLE_TAGS':
      return 'tags such as !name are not supported'
    case 'BAD_ALIAS':
    case 'ALIAS_PROPS':
    case 'MULTIPLE_ANCHORS':
      return 'misplaced anchor or alias'
    case 'BAD_DIRECTIVE':
      return 'unknown directive'
    case 'RESOURCE_EXHAUSTION':
      return 'nested too deeply'
    default:
      return 'unexpected character, bracket or word'
  }
}
