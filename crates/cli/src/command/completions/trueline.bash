# bash completion for trueline; the program itself says what may stand where the cursor is.
_trueline() {
    local line=${COMP_LINE:0:COMP_POINT} IFS=$' \t\n' found cut last
    local -a words
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    # Quotes are the shell's.
    words=("${words[@]//[\'\"\\]/}")
    # Readline breaks words at = and :, and replaces only what follows.
    last=${COMP_WORDS[COMP_CWORD]//[\'\"\\]/}
    [[ $last == [=:] ]] && last=
    cut=${words[${#words[@]}-1]}
    cut=${cut%"$last"}
    COMPREPLY=()
    while IFS= read -r found; do
        found=${found%%$'\t'*}
        COMPREPLY+=("${found#"$cut"}")
    done < <("${words[0]/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _trueline trueline
