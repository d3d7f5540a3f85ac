/** Safe HTML. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | string | number | readonly Part[]

/** A template for HTML: every part that is not `Html` is escaped. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  let text = texts[0]!
  for (const [i, part] of parts.entries()) text += textOf(part) + texts[i + 1]!
  return new Html(text)
}

function textOf(part: Part): string {
  if (part instanceof Html) return part.text
  return Array.isArray(part) ? part.map(textOf).join('') : escaped(String(part))
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** JSON that cannot end the element around it. */
export function inlineJson(value: unknown): Html {
  return new Html(
    JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (character) => {
      return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
    }),
  )
}
