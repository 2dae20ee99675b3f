//! Times of day in the format of any locale (strftime's `%X`), as sar prints them.

use jiff::civil::Time;

use super::stamp::PrintedTimestamp;

/// Maximum length of a text that can be a time.
const MAX_TEXT_BYTES: usize = 96;

/// The words for AM and PM in the locales of glibc 2.36 with a twelve-hour clock.
const HALVES: &[(&str, &str)] = &[
    ("AM", "PM"),
    ("AN", "EW"),
    ("N.U.", "N.H."),
    ("PD", "MD"),
    ("Purvahan", "Aparaahna"),
    ("WD", "WB"),
    ("asubuhi", "alasiri"),
    ("biknait", "apinun"),
    ("hengihengi", "efiafi"),
    ("m", "f"),
    ("saaku", "carra"),
    ("soodo", "hawwaro"),
    ("subaxnimo", "galabnimo"),
    ("téng-po͘", "ē-po͘"),
    ("πμ", "μμ"),
    ("دوپھربرونھ", "دوپھرپتھ"),
    ("ص", "م"),
    ("پن", "دن"),
    ("पूर्वाह्न", "अपराह्न"),
    ("फुं.", "बेलासे."),
    ("बिहिनियाँ", "मंझनियाँ"),
    ("म.पू.", "म.नं."),
    ("सञं", "सबेर"),
    ("এ.ম.", "প.ম."),
    ("পূর্বাহ্ণ", "অপরাহ্ণ"),
    ("পূৰ্ব্বাহ্ন", "অপৰাহ্ন"),
    ("ਸਵੇਰੇ", "ਸ਼ਾਮ"),
    ("સવારે", "સાંજે"),
    ("காலை", "மாலை"),
    ("ఉ.", "సా."),
    ("ಕಾಂಡೆ", "ಬಯ್ಯ"),
    ("ಪೂರ್ವಾಹ್ನ", "ಅಪರಾಹ್ನ"),
    ("രാവിലെ", "വൈകു"),
    ("ဂယး", "တ္ၚဲစေၚ်"),
    ("နံနက်", "ညနေ"),
    ("ပွတ်းၼႂ်", "ဝၢႆးဝၼ်း"),
    ("ማለዶ", "ቃማ"),
    ("ቀደም ሰር ምዕል", "ሓቆ ሰር ምዕል"),
    ("ንጉሆ ሰዓተ", "ድሕር ሰዓት"),
    ("ጡዋት", "ከሰዓት"),
    ("ጽባሕ", "ምሴት"),
    ("ፋዱስ ጃብ", "ፋዱስ ደምቢ"),
    ("ᏌᎾᎴ", "ᏒᎯᏱᎢᏗᏢ"),
    ("上午", "下午"),
    ("午前", "午後"),
    ("오전", "오후"),
];

/// The digit zero of each script in whose digits a locale prints times.
const ZEROS: [u32; 7] = [0x0660, 0x06f0, 0x0966, 0x09e6, 0x0b66, 0x1040, 0x1090];

/// Words and signs around the numbers: of hours, minutes and seconds, and Norwegian's "kl.".
const UNITS: [&str; 14] = [
    "時",
    "时",
    "시",
    "點",
    "分",
    "분",
    "秒",
    "초",
    "kl",
    "ཆུ",
    "ཚོད",
    "ཀསར",
    "མ",
    "ཆ",
];

/// Reads a time of day that has no date. The name of a zone is ignored, since it is not reliable.
pub(crate) fn time_of_day(text: &str) -> Option<PrintedTimestamp> {
    if text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let mut numbers: Vec<i8> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut last = Kind::Gap;
    for character in text.chars() {
        let digit = digit(character);
        let kind = match digit {
            Some(_) => Kind::Digit,
            None if ".,:፡/ ་\t".contains(character) => Kind::Gap,
            None => Kind::Letter,
        };
        match (kind, last) {
            (Kind::Digit, Kind::Digit) => {
                let number = numbers.last_mut()?;
                *number = number.checked_mul(10)?.checked_add(digit?)?;
            }
            (Kind::Digit, _) => numbers.push(digit?),
            (Kind::Letter, Kind::Letter) => words.last_mut()?.push(character),
            (Kind::Letter, _) => words.push(character.to_string()),
            (Kind::Gap, _) => {}
        }
        last = kind;
    }
    let (hour, minute, second) = match numbers[..] {
        [hour, minute, second] => (hour, minute, second),
        // The Norwegian format has no seconds.
        [hour, minute] if words.iter().any(|word| word == "kl") => (hour, minute, 0),
        _ => return None,
    };
    let afternoon = half(&words)?;
    let hour = match afternoon {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(afternoon) => hour % 12 + if afternoon { 12 } else { 0 },
    };
    Some(PrintedTimestamp {
        date: None,
        time: Time::new(hour, minute, second, 0).ok()?,
        offset: None,
        twelve_hours: afternoon.is_some(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Digit,
    Letter,
    /// A separator.
    Gap,
}

fn digit(character: char) -> Option<i8> {
    let code = u32::from(character);
    let own = ZEROS
        .iter()
        .find_map(|zero| code.checked_sub(*zero).filter(|digit| *digit < 10));
    let digit = character.to_digit(10).or(own)?;
    i8::try_from(digit).ok()
}

/// The half of the day in the words around a time, true for PM: `Some(None)` for a 24-hour clock, `None` if a word does
/// not belong to a time.
fn half(words: &[String]) -> Option<Option<bool>> {
    let rest: Vec<&String> = words
        .iter()
        .filter(|word| !UNITS.contains(&word.as_str()))
        .collect();
    let is = |half: &str, words: &[&String]| {
        let parts = half.split(['.', ' ']).filter(|part| !part.is_empty());
        !words.is_empty() && parts.eq(words.iter().map(|word| word.as_str()))
    };
    let find = |words: &[&String]| {
        HALVES.iter().find_map(|(morning, afternoon)| {
            let is_morning = is(morning, words);
            (is_morning || is(afternoon, words)).then_some(!is_morning)
        })
    };
    let is_zone = |word: &String| {
        let letters = word.trim_start_matches(['+', '-']);
        word.len() <= 5 && letters.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    match &rest[..] {
        [] => Some(None),
        all if find(all).is_some() => Some(find(all)),
        [zone] if is_zone(zone) => Some(None),
        [zone, half @ ..] if is_zone(zone) && find(half).is_some() => Some(find(half)),
        [half @ .., zone] if is_zone(zone) && find(half).is_some() => Some(find(half)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_form_are_read() {
        for (text, time) in [
            ("17:45:59", (17, 45, 59)),
            ("05:45:59 PM", (17, 45, 59)),
            ("12:05:01 AM", (0, 5, 1)),
            ("12:05:01 PM", (12, 5, 1)),
            ("17.45.59", (17, 45, 59)),
            ("05:45:59 PM IST", (17, 45, 59)),
            ("UTC 05:45:59 م", (17, 45, 59)),
            ("17時45分59秒", (17, 45, 59)),
            ("17时45分59秒 UTC", (17, 45, 59)),
            ("17點45分59秒", (17, 45, 59)),
            ("17시 45분 59초", (17, 45, 59)),
            ("下午 05時45分59秒 UTC", (17, 45, 59)),
            ("ཆུ་ཚོད་17ཀསར་མ་45ཀསར་ཆ59", (17, 45, 59)),
            ("۱۷:۴۵:۵۹", (17, 45, 59)),
            ("ఉ.05.45.59 UTC", (5, 45, 59)),
            ("5:45:59 ሓቆ ሰር ምዕል", (17, 45, 59)),
            ("5:45:59፡ምሴት", (17, 45, 59)),
            ("05:45:59.MD CET", (17, 45, 59)),
            ("05:45:59 μμ", (17, 45, 59)),
            ("05:45:59 N.H.", (17, 45, 59)),
            ("kl. 17.45 +00", (17, 45, 0)),
            ("17:45:59 sda", (0, 0, 0)),
            ("17:45", (0, 0, 0)),
            ("25:45:59", (0, 0, 0)),
            ("13:45:59 PM", (0, 0, 0)),
            ("Average:", (0, 0, 0)),
            ("", (0, 0, 0)),
        ] {
            let (hour, minute, second) = time;
            let expected = Time::new(hour, minute, second, 0).ok();
            let expected = expected.filter(|time| *time != Time::midnight());
            assert_eq!(
                time_of_day(text).map(|stamp| stamp.time),
                expected,
                "{text}"
            );
        }
    }
}
