# fish completion for trueline; the program itself says what may stand where the cursor is.
function __trueline_complete
    set -l words (commandline -opc)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l typed (commandline -ct)
    # A quote that is still open cannot be undone as a whole.
    set -l current (string unescape -- "$typed"; or string trim --left --chars "'\"" -- "$typed")
    set -l found ($program complete -- $words[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c trueline -f -a '(__trueline_complete)'
