# fish completion for trueline; the program itself says what may stand where the cursor is.
function __trueline_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct | string trim --left --chars "'\"")
    set -l found ($words[1] complete -- $words[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c trueline -f -a '(__trueline_complete)'
