# bash completion for trueline; the program itself says what may stand where the cursor is.
_trueline() {
    local rest=${COMP_LINE:0:COMP_POINT} word blanks last cut found i
    local -a words=()
    # Readline breaks words at =, : and @ too, and replaces only the last part, with its @: what no
    # blank parts is one word to the program.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blanks=${rest%%[![:space:]]*}
        rest=${rest#"$blanks"}
        word=${COMP_WORDS[i]}
        [[ $i -eq $COMP_CWORD ]] && word=$rest
        rest=${rest#"$word"}
        if [[ $i -eq 0 || -n $blanks ]]; then words+=("$word"); else words[-1]+=$word; fi
    done
    last=$word
    last=${last#[=:]}
    [[ -z $blanks && ${COMP_WORDS[COMP_CWORD-1]} == @ ]] && last=@$last
    # Quotes are the shell's.
    words=("${words[@]//[\'\"\\]/}")
    cut=${words[-1]}
    cut=${cut%"${last//[\'\"\\]/}"}
    COMPREPLY=()
    while IFS= read -r found; do
        found=${found%%$'\t'*}
        found=${found#"$cut"}
        case $last in
            # Within quotes the word stands as it is; a mark that ends them is not offered.
            [\'\"]*) [[ $found == *[\'\"\\\$\`!]* ]] || COMPREPLY+=("$found") ;;
            *) printf -v found %q "$found"; COMPREPLY+=("${found//\\,/,}") ;;
        esac
    done < <("${words[0]/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace
    return 0
}
complete -o default -F _trueline trueline
