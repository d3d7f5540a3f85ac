import { basename } from 'node:path'
import { command } from '../command-line/command.ts'
import { DONE } from '../terminal/exit-code.ts'

// Each script gets commands, flags and their values from `spillway`; without any, the shell completes files.
const SCRIPTS = {
  bash: `_spillway_completion() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(spillway --get-yargs-completions "\${COMP_WORDS[@]}")" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o bashdefault -o default -F _spillway_completion spillway`,
  zsh: `#compdef spillway
_spillway_completion() {
  local -a found
  found=(\${(f)"$(spillway --get-yargs-completions "\${words[@]}")"})
  if (( \${#found} )); then _describe 'spillway' found; else _files; fi
}
if [[ "\${zsh_eval_context[-1]}" == loadautofunc ]]; then _spillway_completion "$@"
else compdef _spillway_completion spillway; fi`,
  fish: `function __spillway_completion
  spillway --get-yargs-completions spillway (commandline -opc)[2..-1] (commandline -ct; or echo)
end
complete -c spillway -n __fish_use_subcommand -f -a '(__spillway_completion)'
complete -c spillway -n 'not __fish_use_subcommand' -F -a '(__spillway_completion)'`,
} as const

const SHELLS = ['bash', 'zsh', 'fish'] as const

export const completion = command({
  options: (yargs) =>
    yargs
      .positional('shell', { choices: SHELLS, describe: 'Shell; left out: that of the environment (SHELL)' })
      .example('$0 completion bash >> ~/.bashrc', 'For bash')
      .example('$0 completion zsh >> ~/.zshrc', 'For zsh')
      .example('$0 completion fish > ~/.config/fish/completions/spillway.fish', 'For fish'),
  async run({ shell }, { env, stdout }) {
    const own = SHELLS.find((name) => name === basename(env.SHELL ?? ''))
    await stdout.line(SCRIPTS[shell ?? own ?? 'bash'])
    return DONE
  },
})
