// Of a transcript, the copy button takes the commands alone: what stands behind `$`.
document.addEventListener('click', event => {
    const button = event.target.closest('.clip-button');
    const code = button && button.closest('pre').querySelector('code.language-console');
    if (!code || !navigator.clipboard) return;
    event.stopImmediatePropagation();
    const commands = code.textContent.split('\n').filter(line => line.startsWith('$ ')).map(line => line.slice(2));
    navigator.clipboard.writeText(commands.join('\n'));
}, true);
