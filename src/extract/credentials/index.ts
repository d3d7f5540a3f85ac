export { exchangedToken, type TokenInfo, testedToken } from './token-responses.ts'
export { always, type Token, type Tokens, tokenSource } from './token-source.ts'
